#include "support/linear_law.h"

/* S <- S + F S F^T, F <- F F; returns the largest element of the new F. */
static double double_law(int64_t n, double *F, double *S, double *scratch)
{
    double largest = 0;

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            scratch[i * n + j] = 0;
            for (int64_t k = 0; k < n; k++)
                scratch[i * n + j] += F[i * n + k] * S[k * n + j];
        }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t k = 0; k < n; k++)
                S[i * n + j] += scratch[i * n + k] * F[j * n + k];
    memcpy(scratch, F, (size_t)(n * n) * sizeof *F);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            F[i * n + j] = 0;
            for (int64_t k = 0; k < n; k++)
                F[i * n + j] += scratch[i * n + k] * scratch[k * n + j];
            largest = fmax(largest, fabs(F[i * n + j]));
        }
    return largest;
}

void columns_of(linear_step *step, const void *self, int64_t n, int64_t n_column, bool of_noise,
                double *out)
{
    double unit[LINEAR_MOST], zero[LINEAR_MOST] = {0}, column[LINEAR_MOST];

    for (int64_t j = 0; j < n_column; j++) {
        memset(unit, 0, sizeof unit);
        unit[j] = 1;
        step(self, of_noise ? zero : unit, of_noise ? unit : zero, column);
        for (int64_t i = 0; i < n; i++)
            out[i * n_column + j] = column[i];
    }
}

bool linear_law(linear_step *step, const void *self, int64_t n, int64_t n_noise, const double *N,
                double *S)
{
    double F[LINEAR_MOST * LINEAR_MOST], G[LINEAR_MOST * LINEAR_MOST],
        scratch[LINEAR_MOST * LINEAR_MOST], largest = 1;

    columns_of(step, self, n, n, false, F);
    columns_of(step, self, n, n_noise, true, G);
    memset(S, 0, (size_t)(n * n) * sizeof *S);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t k = 0; k < n_noise; k++)
                for (int64_t l = 0; l < n_noise; l++)
                    S[i * n + j] += G[i * n_noise + k] * N[k * n_noise + l] * G[j * n_noise + l];
    for (int round = 0; round < 40 && largest > 1e-20 && largest < 1e100; round++)
        largest = double_law(n, F, S, scratch);
    return largest <= 1e-20;
}

double order_of(double bias, double bias_of_half)
{
    return log2(bias / bias_of_half);
}
