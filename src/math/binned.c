#include "math/binned.h"

#include "math/simd/simd.h"

void em_binned_clear(int64_t n, double *bins)
{
    em_simd_best()->binned_clear(n, bins);
}

void em_binned_add(int64_t n, double *x, double *bins)
{
    em_simd_best()->binned_add(n, x, bins);
}

void em_binned_merge(int64_t n, const double *from, double *bins)
{
    em_simd_best()->binned_merge(n, from, bins);
}

void em_binned_values(int64_t n, const double *bins, double *out)
{
    em_simd_best()->binned_values(n, bins, out);
}

void em_binned_single(int64_t n, double *x)
{
    em_simd_best()->binned_single(n, x);
}
