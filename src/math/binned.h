/*
 * Sums that do not depend on the order of their terms, nor on how these are dealt to processes
 * (Demmel & Nguyen 2013, "Fast reproducible floating-point summation"). Every term is cut at fixed
 * binary places, 40 bits apart, into the three highest pieces that the largest term of its sum
 * reaches; pieces of one place add without rounding. What is lost is below 2^-80 of the largest
 * term, and a sum of one term is exact.
 *
 * A number of 2^1006 or more counts as infinite, one below 2^-941 as zero. Up to EM_BINNED_TERMS
 * terms may be added, the terms of merged sums counted together.
 */
#pragma once

#include <stdint.h>

enum { EM_BINNED_FOLDS = 3, EM_BINNED_TERMS = 1024 };

/* Numbers that the bins of n sums take; n is a multiple of 8. */
static inline int64_t em_binned_size(int64_t n)
{
    return EM_BINNED_FOLDS * n;
}

/* Sets n sums to zero. bins [em_binned_size(n)] holds, for every eight sums, their highest pieces,
 * then the middle and the lowest ones. It is 64-byte aligned, like x and out below. Local. */
void em_binned_clear(int64_t n, double *bins);

/* Adds the terms x [n], which become zero. Local. */
void em_binned_add(int64_t n, double *x, double *bins);

/* Adds the sums `from` to those of `bins`. Local. */
void em_binned_merge(int64_t n, const double *from, double *bins);

/* out[i] = the i-th sum, rounded: a NaN or an infinity where a term was one. Local. */
void em_binned_values(int64_t n, const double *bins, double *out);

/* x[i] becomes what a sum of this one term is. Local. */
void em_binned_single(int64_t n, double *x);
