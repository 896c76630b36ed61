/*
 * Outlying chains, and the criterion that ends the initial phase of warmup. Both are judged by the
 * log densities of all chains of the run in a window of iterations. The functions are pure and take
 * numbers that all ranks have, so that all ranks decide alike. All Local.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The log densities of one chain in a window of iterations. All members are double, so that rows of
 * them can be gathered. */
typedef struct em_log_density_window {
    double length;      /* iterations */
    double mean;        /* of all of them */
    double early, late; /* means of the first half and of the second */
    double variance;
} em_log_density_window;

em_log_density_window em_log_density_window_of(int64_t length, const double *log_density);

/*
 * Marks the outlying chains: those whose mean log density is more than 4 (sqrt(d/2) + 2) below the
 * median of the better half of the chains, and those that did not move while others did. Where that
 * would be all chains, it marks none. Returns how many. `scratch`: [n_chain].
 */
int64_t em_find_outlying_chains(int64_t n_chain, const em_log_density_window *window, int64_t dim,
                                double *scratch, bool *outlying);

/* True for a chain whose log density hardly changed. */
bool em_stands_still(const em_log_density_window *window, int64_t dim);

/* True when all chains but `spared`, at most, are neither outlying nor recently reinitialised, the
 * log densities of these chains have no trend, and their means differ no more than those of chains
 * of one law do in so short a window. */
bool em_initial_phase_has_ended(int64_t n_chain, const em_log_density_window *window,
                                const bool *outlying, int64_t spared);
