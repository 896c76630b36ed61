#include "mass/moments.h"

#include <stdint.h>

void em_moments_add(em_structure structure, int64_t dim, const double *x, double *moments)
{
    double *product = moments + dim;

    for (int64_t i = 0; i < dim; i++)
        moments[i] += x[i];
    if (structure == EM_MASS_DIAG) {
        for (int64_t i = 0; i < dim; i++)
            product[i] += x[i] * x[i];
        return;
    }
    for (int64_t i = 0; i < dim; i++)
        for (int64_t j = 0; j <= i; j++)
            *product++ += x[i] * x[j];
}

/* sum (x - d)(x - d)^T = sum x x^T - s d^T - d s^T + n d d^T, with s = sum x */
void em_moments_shift(em_structure structure, int64_t dim, double n, const double *shift,
                      double *moments)
{
    const double *sum = moments, *d = shift;
    double *product = moments + dim;

    for (int64_t i = 0; i < dim; i++)
        for (int64_t j = structure == EM_MASS_DIAG ? i : 0; j <= i; j++)
            *product++ += n * d[i] * d[j] - sum[i] * d[j] - d[i] * sum[j];
    for (int64_t i = 0; i < dim; i++)
        moments[i] -= n * d[i];
}

/* out = (products - shift sum sum^T) / divisor */
static void second_moments(em_structure structure, int64_t dim, const double *moments, double shift,
                           double divisor, double *out)
{
    const double *sum = moments, *product = moments + dim;

    if (structure == EM_MASS_DIAG) {
        for (int64_t i = 0; i < dim; i++)
            out[i] = (product[i] - shift * sum[i] * sum[i]) / divisor;
        return;
    }
    for (int64_t i = 0; i < dim; i++)
        for (int64_t j = 0; j <= i; j++) {
            out[i * dim + j] = (*product++ - shift * sum[i] * sum[j]) / divisor;
            out[j * dim + i] = out[i * dim + j];
        }
}

void em_moments_about_zero(em_structure structure, int64_t dim, double n, const double *moments,
                           double *out)
{
    second_moments(structure, dim, moments, 0, n, out);
}

void em_moments_covariance(em_structure structure, int64_t dim, double n, const double *moments,
                           double *out)
{
    second_moments(structure, dim, moments, 1 / n, n - 1, out);
}
