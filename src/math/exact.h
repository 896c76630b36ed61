/*
 * Sums that do not depend on the order of their terms, of up to 2^31 terms: each is cut at fixed
 * binary places, 32 bits apart, into the four highest digits that the largest term of its sum
 * reaches, and digits of one place add as integers. What is lost of a term is below 2^-96 of the
 * largest one, so below 2^-65 of it in all; a sum of one term is exact. (math/binned.h is for fewer
 * terms, and vectors.)
 */
#pragma once

#include <stdint.h>

/* All zero: a sum of no term. */
typedef struct em_exact_sum {
    int64_t place; /* of the highest digit; 0: there is none yet; INT64_MAX: not finite */
    int64_t digit[4];
} em_exact_sum;

/* The sum of one term. Local. */
em_exact_sum em_exact_of(double x);

/* Adds the terms of `from`. Local. */
void em_exact_add(const em_exact_sum *from, em_exact_sum *into);

/* The sum, rounded once; NaN where a term was not finite. Local. */
double em_exact_value(const em_exact_sum *sum);
