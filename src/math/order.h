/* Numbers in order. All Local. */
#pragma once

#include <stdint.h>

/* Sorts x [n], which holds no NaN, in place: the smallest first. */
void em_sort_numbers(int64_t n, double *x);

/* The median of x [n], n > 0, which is sorted. */
double em_sorted_median(int64_t n, const double *x);
