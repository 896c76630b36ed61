/*
 * Outlying chains, and the criterion that ends the initial phase of warmup. Both use the log
 * densities of all chains of the run in a window of iterations. The functions are pure, and their
 * arguments are equal on all ranks, so all ranks get the same result. All Local.
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
 * Marks the outlying chains and returns their number. A chain is outlying if its mean log density
 * is more than 4 (sqrt(d/2) + 2) below the median of the better half of the chains, or if it did
 * not move while others did. If that holds for all chains, none is marked. `scratch`: [n_chain].
 */
int64_t em_find_outlying_chains(int64_t n_chain, const em_log_density_window *window, int64_t dim,
                                double *scratch, bool *outlying);

/* The limit below which a mean log density is outlying. `scratch`: [n_chain]. */
double em_least_log_density(int64_t n_chain, const em_log_density_window *window, int64_t dim,
                            double *scratch);

/* The length of a transient: the iterations until a chain came to log densities of at least
 * `least`, where it has stayed; 0 if its mean before that was not below `least`, or if fewer than 5
 * iterations followed. log_density [n] may be NaN: unknown. */
int64_t em_transient_length(int64_t n, const double *log_density, double least);

/* Whether the log density of a chain hardly changed. */
bool em_stands_still(const em_log_density_window *window, int64_t dim);

/* Whether the initial phase has ended. All chains but at most `spared` must be neither outlying nor
 * recently reinitialised. The log densities of these chains must have no trend, and their means
 * must not differ more than those of stationary chains do in a window of this length. */
bool em_initial_phase_has_ended(int64_t n_chain, const em_log_density_window *window,
                                const bool *outlying, int64_t spared);
