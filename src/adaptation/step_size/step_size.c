#include "adaptation/step_size/step_size.h"

#include <math.h>

/* Stan's constants. */
static const double gain = 0.05, delay = 10, decay = 0.75;

void em_dual_averaging_start(em_dual_averaging *state, double step_size, double factor)
{
    state->first = step_size;
    state->mu = log(factor * step_size);
    state->count = 0;
    state->h_bar = 0;
    state->log_bar = 0; /* the first update has all of the weight */
}

double em_dual_averaging_update(em_dual_averaging *state, double acceptance)
{
    const double t = ++state->count, weight = 1 / (t + delay), keep = pow(t, -decay);

    state->h_bar = (1 - weight) * state->h_bar + weight * (state->target - acceptance);
    const double log_step = state->mu - sqrt(t) / gain * state->h_bar;
    state->log_bar = keep * log_step + (1 - keep) * state->log_bar;
    return exp(log_step);
}

double em_dual_averaging_final(const em_dual_averaging *state)
{
    return state->count > 0 ? exp(state->log_bar) : state->first;
}
