/*
 * Does a kernel leave a Gaussian law invariant? Chains start in the law, run, and their first and
 * second moments are compared with the exact ones in units of their own Monte Carlo standard error.
 */
#ifndef TESTS_SUPPORT_LAW_H
#define TESTS_SUPPORT_LAW_H

#include "base/memory.h"
#include "diagnostics/diag.h"
#include "math/linalg.h"
#include "math/rng.h"
#include "par/grid.h"
#include "posterior/posterior.h"
#include "sampler/kernel/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LAW_MOST_DIM = 8 };

/* N(mean, precision^-1). */
typedef struct gaussian_law {
    int64_t dim;
    double mean[LAW_MOST_DIM];
    double precision[LAW_MOST_DIM][LAW_MOST_DIM];
} gaussian_law;

extern const gaussian_law law_of_three; /* of three dimensions, correlated */

/* A model of the law, for em_posterior_create. */
typedef struct law_model {
    em_model base;
    const gaussian_law *law;
} law_model;

em_status law_add_prior(em_model *base, const em_query *query);
law_model law_model_of(const gaussian_law *law);

/* theta ~ the law: with A = L L^T, theta = mean + L^-T z. */
void law_draw(const gaussian_law *law, uint64_t seed, int64_t chain, double *theta);

/* The covariance that is expected, [dim][dim]: of the law itself. */
void law_covariance(const gaussian_law *law, double *covariance);

/* |mean of f - expected| in Monte Carlo standard errors; f is [n_chain][n_draw]. */
double law_z(em_diag *diag, int64_t n_chain, int64_t n_draw, const double *f, double expected);

#endif
