/* Vector loops over transcendental functions (SLEEF), chosen at run time for the processor. */
#pragma once

#include "math/simd/simd.h"

#include <stdint.h>

/* For n logits a[i]: softplus[i] = log(1 + exp(a[i])) and sigmoid[i] = 1 / (1 + exp(-a[i])),
 * accurate to a few ulp over the whole range, without overflow. n is a multiple of 8, arrays
 * 64-byte aligned; softplus or sigmoid may alias a. Element i depends on a[i] alone. Local. */
static inline void em_logistic(int64_t n, const double *a, double *softplus, double *sigmoid)
{
    em_simd_best()->logistic(n, a, softplus, sigmoid);
}

/* out[i] = exp(x[i]); the same conditions. Local. */
static inline void em_exp(int64_t n, const double *x, double *out)
{
    em_simd_best()->exp(n, x, out);
}

/* out[i] = exp(x[i]), faster where most x[i] are between -0.34 and 0.34. Local. */
static inline void em_exp_near_0(int64_t n, const double *x, double *out)
{
    em_simd_best()->exp_near_0(n, x, out);
}

/* out[i] = log(x[i]); the same conditions. Local. */
static inline void em_log(int64_t n, const double *x, double *out)
{
    em_simd_best()->log(n, x, out);
}

/* out[i] = log(1 + x[i]) for x[i] >= 0; the same conditions. Local. */
static inline void em_log1p(int64_t n, const double *x, double *out)
{
    em_simd_best()->log1p(n, x, out);
}

/* For y[i] >= 0 and phi > 0: value[i] = log(Gamma(y + phi) / (Gamma(phi) phi^y)), and slope[i] =
 * phi times its derivative by phi. Errors are of the order of 1e-15 (1 + y) for every phi. The same
 * conditions; value and slope do not alias. Local. */
static inline void em_log_rising(int64_t n, const double *y, double phi, double *value,
                                 double *slope)
{
    em_simd_best()->log_rising(n, y, phi, value, slope);
}
