/* Whether some draws, for example the divergent ones, cluster in a part of the region of all draws.
 * All Local. */
#pragma once

#include "emass/status.h"

#include <stdint.h>

typedef struct em_divergence_cluster {
    double distance;  /* the largest distance between the two distribution functions, in 0 .. 1 */
    double by_chance; /* chance exceeds this distance in one of twenty sets of n_tried numbers;
                         above 1: there are too few marked draws to tell */
} em_divergence_cluster;

/*
 * Compares the marked (not 0) draws of x, [n_chain][n_draw], with the others by the
 * Kolmogorov-Smirnov distance. It is computed from ranks, so any increasing function of x has the
 * same distance. `ess` is the effective sample size of all draws. Marked draws of a chain that are
 * less than n_chain n_draw / ess apart count once. The distance is 0 if all draws or none are
 * marked, or if x has NaN. Errors: EM_EMEMORY.
 */
em_status em_find_divergence_cluster(int64_t n_chain, int64_t n_draw, const double *x,
                                     const double *marked, double ess, int64_t n_tried,
                                     em_divergence_cluster *out);
