/* Vector loops over transcendental functions (SLEEF), chosen at run time for the processor. */
#ifndef EM_MATH_VECTOR_H
#define EM_MATH_VECTOR_H

#include <stdint.h>

/*
 * For n logits a[i]: softplus[i] = log(1 + exp(a[i])) and sigmoid[i] = 1 / (1 + exp(-a[i])),
 * accurate to a few ulp over the whole range, without overflow. n is a multiple of 8, arrays
 * 64-byte aligned; softplus or sigmoid may alias a. Element i depends on a[i] alone. Local.
 */
void em_logistic(int64_t n, const double *a, double *softplus, double *sigmoid);

/* out[i] = exp(x[i]); the same conditions. Local. */
void em_exp(int64_t n, const double *x, double *out);

#endif
