/* Sorting of numbers, and the median. All Local. */
#pragma once

#include <stdint.h>

/* Sorts x [n], which has no NaN, in place in ascending order. */
void em_sort_numbers(int64_t n, double *x);

/* The median of a sorted array x [n], n > 0. */
static inline double em_sorted_median(int64_t n, const double *x)
{
    return x[(n - 1) / 2] / 2 + x[n / 2] / 2;
}
