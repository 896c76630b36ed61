/* The target acceptance rate, and when it is raised. */
#include "adaptation/adaptation_internal.h"
#include "adaptation/noncentring/noncentring_search.h"

#include <math.h>

/* How often the distance of the target from 1 is halved: once for each phase that found that
 * trajectories are lost, and twice where they diverge, since NUTS took over if it did. */
static int count_shortenings(const em_adapt *adapt)
{
    int count = 0;

    for (int64_t i = 0; i < adapt->n_phase; i++) {
        const em_phase_end end = (em_phase_end)adapt->record[i].end;
        if (end == EM_END_UNEVEN)
            count = 0;
        count += end == EM_END_LOST;
        count += end == EM_END_DIVERGING || end == EM_END_LEAPFROG_DIVERGING ? 2 : 0;
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
    const double least = em_has_noncentred_groups(adapt) ? EM_NONCENTRED_ACCEPT
                         : nuts_replaced_hmc             ? uneven
                                                         : 0;
    const double first = fmax(adapt->sampler_options->target_accept, least);
    const double target = 1 - (1 - first) * pow(0.5, count_shortenings(adapt));

    if (!adapt->adapts_step)
        return;
    adapt->pools->averaging.target = target;
    adapt->search->kept_averaging.target = target;
}

double em_most_lost(const em_adapt *adapt)
{
    const double closest = 0.97; /* steps that aim at more are short enough */
    const int count = count_shortenings(adapt);
    const bool may = adapt->adapts_step && count < EM_MOST_SHORTENINGS &&
                     adapt->pools->averaging.target < closest;

    return may ? 0.01 * (1 + count) : 1;
}
