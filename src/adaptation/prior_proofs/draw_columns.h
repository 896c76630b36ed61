/*
 * Private to adaptation and tempering: draws of a search, by column. All Local.
 */
#pragma once

#include "emass/status.h"
#include "mass/estimator.h"

/* Draw r of n that are used, thinned evenly: position and gradient [2 dim]. */
static inline const double *em_thinned_sample(const em_samples *samples, int64_t dim, int64_t n,
                                              int64_t r)
{
    return samples->row + r * samples->n / n * 2 * dim;
}

/* The mean and the standard deviation of number k of the samples, of n > 0: a parameter, or from
 * dim on a derivative. */
void em_sample_moments(int64_t dim, const em_samples *samples, int64_t k, double *mean, double *sd);

/* Subtracts its mean from x; returns the standard deviation. */
double em_centre_column(int64_t n, double *x, double *mean);

/* Inserts number k into a list of at most `most` numbers, those with the highest scores first.
 * Returns the length of the list, which was n. */
int em_insert_by_score(int n, int most, double score, int64_t k, double *scores, int64_t *list);

/* Writes to rho [dim][dim] the correlations of log |g_i| and x_k; 0 if i = k. x [dim][n] less their
 * means, sd [dim]; g [dim][n] is overwritten. log_sd [dim]: standard deviations of the logs.
 * Errors: EM_EMEMORY. */
em_status em_correlate_logs(int64_t dim, int64_t n, const double *x, const double *sd, double *g,
                            double *log_sd, double *rho);
