/*
 * Leave-one-out cross-validation by Pareto smoothed importance sampling: Vehtari, Simpson, Gelman,
 * Yao and Gabry (2024), "Pareto smoothed importance sampling", with the generalised Pareto fit of
 * Zhang and Stephens (2009), equal to ArviZ's loo. One observation at a time. All Local.
 *
 * Differences from ArviZ, whose results are in parentheses:
 *   equal log likelihoods: k is -infinity, because all weights are 1 and have no tail (infinity);
 *   a tail that cannot be fitted: k is infinity (NaN, which counts as good);
 *   a log likelihood that is no number or infinite: all is NaN (NaN, or an error).
 */
#pragma once

#include "emass/status.h"

#include <stdint.h>

typedef struct em_psis em_psis;

/* Up to this number of draws no tail is fitted, because the largest fifth of them has fewer than
 * five. */
enum { EM_PSIS_TOO_FEW = 20 };

/* The result for one observation. */
typedef struct em_psis_point {
    double lpd;  /* log mean likelihood, with it */
    double elpd; /* without it */
    double k;    /* shape of the tail of the weights; above em_psis_good_k, elpd is unreliable */
} em_psis_point;

/* Creates work space for one thread, for `n_draw` > 0 draws of all chains with relative efficiency
 * `r_eff` > 0. Errors: EM_EMEMORY. */
em_status em_psis_create(int64_t n_draw, double r_eff, em_psis **out);
void em_psis_destroy(em_psis **psis);

/* `log_likelihood` [n_draw] is that of one observation. */
em_psis_point em_psis_leave_out(em_psis *psis, const double *log_likelihood);

/* min(1 - 1 / log10(n_draw), 0.7). */
double em_psis_good_k(int64_t n_draw);

/* The shape and scale of n > 4 excesses in ascending order, the first > 0, or NaN. */
void em_psis_fit(int64_t n, const double *excess, double *shape, double *scale);
