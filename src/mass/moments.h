/*
 * Summable moments of a vector, the accumulators of estimators: a count, a sum and a sum of
 * products, in one array of doubles, so that pooling is one sum. All Local.
 */
#pragma once

#include "mass/mass.h"

/* The number of doubles in the moments of a vector: the sum [dim], then the sum of squares [dim]
 * (diag) or the lower triangle of the sum of products [dim (dim + 1) / 2] (dense). */
static inline int64_t em_moments_size(em_structure structure, int64_t dim)
{
    return dim + (structure == EM_MASS_DENSE ? dim * (dim + 1) / 2 : dim);
}

/* Adds x to the moments. */
void em_moments_add(em_structure structure, int64_t dim, const double *x, double *moments);

/* Replaces the moments of n vectors x by those of x - shift. */
void em_moments_shift(em_structure structure, int64_t dim, double n, const double *shift,
                      double *moments);

/* Second moments of n vectors, divided by n (about zero) or n - 1 (about their mean), as one array
 * of em_mass_size elements, symmetric. */
void em_moments_about_zero(em_structure structure, int64_t dim, double n, const double *moments,
                           double *out);
void em_moments_covariance(em_structure structure, int64_t dim, double n, const double *moments,
                           double *out);
