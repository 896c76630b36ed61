/*
 * The exact law of a sampler on a Gaussian: one step is x' = F x + G xi with xi ~ N(0, N), and the
 * stationary covariance solves S = F S F^T + G N G^T. The step is written down in plain form by the
 * test, the kernel runs, and both its linear part and its moments are compared.
 */
#ifndef TESTS_SUPPORT_LINEAR_LAW_H
#define TESTS_SUPPORT_LINEAR_LAW_H

#include "support/matrix.h"

enum { LINEAR_MOST = 64 }; /* numbers in a state, or of noise in a step */

/* One step, or one iteration: out = F x + G xi. */
typedef void linear_step(const void *self, const double *x, const double *xi, double *out);

/* Column j of the linear part in x (or in the noise) is what the step makes of a unit vector. */
void columns_of(linear_step *step, const void *self, int64_t n, int64_t n_column, bool of_noise,
                double *out);

/*
 * The stationary covariance [n][n] of the step, for xi [n_noise] of covariance N; false where there
 * is none, because the spectral radius of F is not below 1.
 */
bool linear_law(linear_step *step, const void *self, int64_t n, int64_t n_noise, const double *N,
                double *S);

/* log2 of how much a bias shrinks when the step is halved: its order. */
double order_of(double bias, double bias_of_half);

#endif
