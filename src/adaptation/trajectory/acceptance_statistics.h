/*
 * How each chain moves by trajectories of one length and one step size: what betrays a target whose
 * curvature varies, where no step size fits everywhere. A learner with rows to gather; all Local.
 */
#ifndef EM_ADAPTATION_TRAJECTORY_ACCEPTANCE_STATISTICS_H
#define EM_ADAPTATION_TRAJECTORY_ACCEPTANCE_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

/* Of one chain in a stretch; all double, so that rows of them can be gathered. */
typedef struct em_acceptance_statistics {
    double length;      /* iterations */
    double acceptance;  /* sum of acceptance rates */
    double n_diverging; /* trajectories */
} em_acceptance_statistics;

void em_acceptance_observe(double acceptance, bool diverging, em_acceptance_statistics *moves);

/*
 * Whether curvature must vary along the way of the chains that are not flagged: one of them accepts
 * so much less than they do on average as never happens on targets of one curvature, or more than
 * 1 % of the trajectories diverge. False for stretches too short to tell.
 */
bool em_acceptance_is_uneven(int64_t n_chain, const em_acceptance_statistics *moves,
                             const bool *flagged);

#endif
