/* The target acceptance rate, and when it is raised. */
#include "adaptation/adaptation_internal.h"
#include "adaptation/noncentring/noncentring_search.h"

#include <math.h>

/* How many phases found that trajectories are lost, since NUTS took over if it did. *diverged:
 * trajectories diverged in one of them. */
static int count_shortenings(const em_adapt *adapt, bool *diverged)
{
    int count = 0;

    *diverged = false;
    for (int64_t i = 0; i < adapt->n_phase; i++) {
        const em_phase_end end = (em_phase_end)adapt->record[i].end;
        const bool diverges = end == EM_END_DIVERGING || end == EM_END_LEAPFROG_DIVERGING;
        if (end == EM_END_UNEVEN)
            count = 0;
        count += diverges || end == EM_END_LOST;
        *diverged = (*diverged && end != EM_END_UNEVEN) || diverges;
    }
    return count;
}

/* Sets the target acceptance rate. With non-centred coordinates it is lower than where NUTS has
 * replaced hmc without them, because these coordinates remove most of a funnel. */
void em_set_target_accept(em_adapt *adapt)
{
    const double uneven = 0.95;
    const bool nuts_replaced_hmc =
        adapt->plan->learned && adapt->search->kept.kind == EM_TRAJECTORY_U_TURN;
    const double least = em_is_noncentred(adapt) ? EM_NONCENTRED_ACCEPT
                         : nuts_replaced_hmc     ? uneven
                                                 : 0;
    const double first = fmax(adapt->sampler_options->target_accept, least);
    bool diverged;
    const double target = 1 - (1 - first) * pow(0.5, count_shortenings(adapt, &diverged));

    if (!adapt->adapts_step)
        return;
    adapt->pools->averaging.target = target;
    adapt->search->kept_averaging.target = target;
}

double em_most_lost(const em_adapt *adapt)
{
    const double closest = 0.97; /* steps that aim at more are short enough */
    bool diverged;
    const int count = count_shortenings(adapt, &diverged);
    const bool may = adapt->adapts_step && count < EM_MOST_SHORTENINGS &&
                     adapt->pools->averaging.target < closest;

    return may ? 0.01 * (diverged ? 1 : 1 + count) : 1;
}
