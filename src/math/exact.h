/*
 * Scalar sums of up to 2^31 terms that do not depend on the order of their terms. Each term is cut
 * at fixed binary places, 32 bits apart. The four highest digits that the largest term of the sum
 * reaches are kept; digits of one place add as integers. The error of a term is below 2^-96 of the
 * largest term, so that of the sum is below 2^-65 of it. A sum of one term is exact. For vectors of
 * sums of few terms see math/binned.h.
 */
#pragma once

#include <stdint.h>

/* A sum; one that is all zero has no terms. */
typedef struct em_exact_sum {
    /* the place of the highest digit; 0: there are no terms yet; INT64_MAX: a term was not finite
     */
    int64_t place;
    int64_t digit[4];
} em_exact_sum;

/* The sum of one term. Local. */
em_exact_sum em_exact_of(double x);

/* Adds the terms of `from`. Local. */
void em_exact_add(const em_exact_sum *from, em_exact_sum *into);

/* The sum, rounded once; NaN if a term was not finite. Local. */
double em_exact_value(const em_exact_sum *sum);
