/* Properties that all numbers of an array have. All Local. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether all `count` numbers are finite. */
bool em_all_finite(int64_t count, const double *x);

/* Whether all `count` numbers are positive and finite. */
bool em_all_positive(int64_t count, const double *x);

/* Whether all `count` numbers are equal. A NaN is equal to no number. */
bool em_all_equal(int64_t count, const double *x);
