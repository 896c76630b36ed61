/*
 * Which chains have arrived: judged by the log densities of a stretch of iterations, for all chains
 * of the run together, by pure functions of numbers that all ranks have. All Local.
 */
#ifndef EM_ADAPTATION_SCHEDULE_OUTLIERS_H
#define EM_ADAPTATION_SCHEDULE_OUTLIERS_H

#include <stdbool.h>
#include <stdint.h>

/* The log densities of one chain in a stretch; all double, so that rows of them can be gathered. */
typedef struct em_log_density_window {
    double length;      /* iterations */
    double mean;        /* of all of them */
    double early, late; /* of the first half, of the second */
    double variance;
} em_log_density_window;

em_log_density_window em_log_density_window_of(int64_t length, const double *log_density);

/*
 * Flags the chains that others left behind: those whose mean log density is more than 4 (sqrt(d/2)
 * + 2) below the median of the better half of the chains, and those that did not move at all while
 * others did. Never all. Returns how many. `scratch`: [n_chain].
 */
int64_t em_find_outlying_chains(int64_t n_chain, const em_log_density_window *stretch, int64_t dim,
                                double *scratch, bool *flagged);

/* True for a chain whose log density hardly changed. */
bool em_stands_still(const em_log_density_window *stretch, int64_t dim);

/* True when all chains but `spared`, at most, are neither flagged nor newly moved, and of these the
 * log densities have no trend, and they are no farther apart than chains of the same law are in so
 * short a stretch. */
bool em_initial_phase_has_ended(int64_t n_chain, const em_log_density_window *stretch,
                                const bool *flagged, int64_t spared);

#endif
