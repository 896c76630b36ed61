/*
 * Means of functions of the state under a kernel, with their Monte Carlo standard errors, and a
 * noisy Gaussian whose gradient covariance is chosen: for laws that are known but for the error of
 * the integrator.
 */
#ifndef TESTS_SUPPORT_OBSERVE_H
#define TESTS_SUPPORT_OBSERVE_H

#include "support/kernel_bench.h"

/* A number of chain c. */
typedef double observable(const em_block *block, const gaussian_law *law, int64_t c);

/* Runs 8 chains from the target's law for n_draw iterations, after n_draw / 20 that are forgotten.
 */
void observe(noisy_model *model, em_grid *grid, const kernel_run *run, int64_t n_draw,
             int64_t n_observable, observable *const *f, em_diagnosis *out);

double moment_00(const em_block *block, const gaussian_law *law, int64_t c);
double moment_01(const em_block *block, const gaussian_law *law, int64_t c);
double moment_11(const em_block *block, const gaussian_law *law, int64_t c);
double momentum_00(const em_block *block, const gaussian_law *unused, int64_t c);
double momentum_01(const em_block *block, const gaussian_law *unused, int64_t c);
double momentum_11(const em_block *block, const gaussian_law *unused, int64_t c);

/* (theta - mean)^T A (theta - mean) / D - 1 */
double excess_energy(const em_block *block, const gaussian_law *law, int64_t c);

/* The largest deviation of means from what is expected, in standard errors; infinite where a number
 * is not finite. */
double worst_deviation(int64_t n, const em_diagnosis *found, const double *expected);

/* Makes the covariance of a minibatch gradient (drawn with replacement) R R^T: each column of R is
 * that of some pairs of opposite rows. */
void set_noise(noisy_model *model, const matrix *R);

#endif
