/*
 * Leave-one-out cross-validation: how well a model predicts an observation from all others, without
 * sampling again. Each draw gets the weight 1 / (likelihood of the observation). The largest
 * weights, at most a fifth of them, are the tail. It is smoothed: quantiles of a generalised Pareto
 * distribution that is fitted to it replace it. The method is that of Vehtari, Simpson, Gelman, Yao
 * and Gabry (2024), "Pareto smoothed importance sampling". The fit is that of Zhang and Stephens
 * (2009). Observations are handled one at a time. All Local.
 *
 * Results are those of ArviZ's loo, with three exceptions:
 *   all log likelihoods are equal: k is -infinity, because the weights have no tail (ArviZ:
 *   infinity);
 *   a tail cannot be fitted: k is infinity (ArviZ: NaN, which counts as good);
 *   a log likelihood is NaN or infinite: all results are NaN (ArviZ: NaN, or an error).
 */
#pragma once

#include "emass/status.h"

#include <stdint.h>

typedef struct em_psis em_psis;

/* Up to this number of draws no tail is fitted, because it has fewer than five weights. */
enum { EM_PSIS_TOO_FEW = 20, EM_PSIS_LEAST_TAIL = 5 };

/* The result for one observation. */
typedef struct em_psis_point {
    double lpd;  /* log predictive density of the observation, given all observations */
    double elpd; /* the same, given the others alone */
    double k;    /* shape of the tail of the weights; above em_psis_good_k, elpd is unreliable */
} em_psis_point;

/* Creates work space for one thread, for `n_draw` > 0 draws of all chains with relative efficiency
 * `r_eff` > 0. Errors: EM_EMEMORY. */
em_status em_psis_create(int64_t n_draw, double r_eff, em_psis **out);

/* `log_likelihood` [n_draw] is that of one observation. */
em_psis_point em_psis_leave_out(em_psis *psis, const double *log_likelihood);

/* The number of draws in the tail: min(n_draw / 5, 3 sqrt(n_draw / r_eff)), rounded up. */
int64_t em_psis_tail(int64_t n_draw, double r_eff);

/* min(1 - 1 / log10(n_draw), 0.7). */
double em_psis_good_k(int64_t n_draw);

/* The shape and scale of n > 4 excesses in ascending order, the first > 0, or NaN. */
void em_psis_fit(int64_t n, const double *excess, double *shape, double *scale);
