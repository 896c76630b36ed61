/*
 * Sums that depend neither on the order of their terms nor on how the terms are distributed over
 * processes (Demmel & Nguyen 2013, "Fast reproducible floating-point summation"). Each term is cut
 * at fixed binary places, 40 bits apart. The three highest pieces that the largest term of the sum
 * reaches are kept; pieces of one place add without rounding. The error is below 2^-80 of the
 * largest term, and a sum of one term is exact.
 *
 * A number of 2^1006 or more counts as infinite, one below 2^-941 as zero. A sum may have up to
 * EM_BINNED_TERMS terms, the terms of merged sums included.
 */
#pragma once

#include "math/simd/simd.h"

#include <stdint.h>

enum { EM_BINNED_FOLDS = 3, EM_BINNED_TERMS = 1024 };

/* The number of doubles in the bins of n sums; n is a multiple of 8. */
static inline int64_t em_binned_size(int64_t n)
{
    return EM_BINNED_FOLDS * n;
}

/* Sets n sums to zero. bins [em_binned_size(n)] holds, for every eight sums, their highest pieces,
 * then the middle and the lowest ones. It is 64-byte aligned, like x and out below. Local. */
static inline void em_binned_clear(int64_t n, double *bins)
{
    em_simd_best()->binned_clear(n, bins);
}

/* Adds one term x[i] to each of the n sums, and sets x to zero. Local. */
static inline void em_binned_add(int64_t n, double *x, double *bins)
{
    em_simd_best()->binned_add(n, x, bins);
}

/* Adds the sums `from` to those of `bins`. Local. */
static inline void em_binned_merge(int64_t n, const double *from, double *bins)
{
    em_simd_best()->binned_merge(n, from, bins);
}

/* out[i] = the i-th sum, rounded; NaN or infinite if one of its terms was. Local. */
static inline void em_binned_values(int64_t n, const double *bins, double *out)
{
    em_simd_best()->binned_values(n, bins, out);
}

/* Replaces each x[i] by the value of a sum of this one term. Local. */
static inline void em_binned_single(int64_t n, double *x)
{
    em_simd_best()->binned_single(n, x);
}
