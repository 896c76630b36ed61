/*
 * Acceptance statistics of each chain under trajectories of one length and one step size. They show
 * whether the curvature of the target varies so much that no single step size suits all of it. The
 * rows of all chains are gathered before the test. All Local.
 */
#ifndef EM_ADAPTATION_TRAJECTORY_ACCEPTANCE_STATISTICS_H
#define EM_ADAPTATION_TRAJECTORY_ACCEPTANCE_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

/* Of one chain in a phase. All members are double, so that rows of them can be gathered. */
typedef struct em_acceptance_statistics {
    double length;      /* iterations */
    double acceptance;  /* sum of acceptance rates */
    double n_diverging; /* trajectories */
} em_acceptance_statistics;

void em_acceptance_observe(double acceptance, bool diverging, em_acceptance_statistics *statistics);

/*
 * Whether curvature varies where the chains that are not outlying have been. True when one of them
 * accepts less, compared with their mean, than chance explains on targets of constant curvature, or
 * when more than 1 % of the trajectories diverge. False with fewer than 20 iterations a chain.
 */
bool em_acceptance_is_uneven(int64_t n_chain, const em_acceptance_statistics *statistics,
                             const bool *outlying);

#endif
