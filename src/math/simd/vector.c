#include "math/simd/vector.h"

#include "math/simd/simd.h"

void em_logistic(int64_t n, const double *a, double *softplus, double *sigmoid)
{
    em_simd_best()->logistic(n, a, softplus, sigmoid);
}

void em_exp(int64_t n, const double *x, double *out)
{
    em_simd_best()->exp(n, x, out);
}

void em_exp_near_0(int64_t n, const double *x, double *out)
{
    em_simd_best()->exp_near_0(n, x, out);
}

void em_log(int64_t n, const double *x, double *out)
{
    em_simd_best()->log(n, x, out);
}

void em_log1p(int64_t n, const double *x, double *out)
{
    em_simd_best()->log1p(n, x, out);
}

void em_log_rising(int64_t n, const double *y, double phi, double *value, double *slope)
{
    em_simd_best()->log_rising(n, y, phi, value, slope);
}
