/* Whether some draws, for example the divergent ones, cluster in a part of the region of all draws.
 * All Local. */
#pragma once

#include "emass/status.h"

#include <stdint.h>

typedef struct em_divergence_cluster {
    double distance;  /* the largest between two distribution functions, in 0 .. 1 */
    double by_chance; /* what chance passes in one of twenty sets of n_tried numbers; above 1: so
                         few say nothing, wherever they are */
} em_divergence_cluster;

/*
 * Of draws x, [n_chain][n_draw], those that are marked (not 0) against the others: Kolmogorov's and
 * Smirnov's distance, by ranks, so that any increasing function of x has the same. All are worth
 * `ess` independent draws, and marked ones of a chain that are nearer than such a one lasts are
 * one. Distance 0 where there are none of one kind, or x has NaN. Errors: EM_EMEMORY.
 */
em_status em_find_divergence_cluster(int64_t n_chain, int64_t n_draw, const double *x,
                                     const double *marked, double ess, int64_t n_tried,
                                     em_divergence_cluster *out);
