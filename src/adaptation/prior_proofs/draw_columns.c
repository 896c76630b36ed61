#include "adaptation/prior_proofs/draw_columns.h"

#include "base/memory.h"
#include "math/linalg.h"

#include <math.h>

void em_sample_moments(int64_t dim, const em_samples *samples, int64_t k, double *mean, double *sd)
{
    const double n = (double)samples->n, *x = samples->row + k;
    double square = 0;

    *mean = 0;
    for (int64_t r = 0; r < samples->n; r++)
        *mean += x[r * 2 * dim] / n;
    for (int64_t r = 0; r < samples->n; r++)
        square += pow(x[r * 2 * dim] - *mean, 2) / n;
    *sd = sqrt(square);
}

double em_centre_column(int64_t n, double *x, double *mean)
{
    double sum = 0, square = 0;

    for (int64_t r = 0; r < n; r++)
        sum += x[r];
    *mean = sum / (double)n;
    for (int64_t r = 0; r < n; r++) {
        x[r] -= *mean;
        square += x[r] * x[r];
    }
    return sqrt(square / (double)n);
}

int em_insert_by_score(int n, int most, double score, int64_t k, double *scores, int64_t *list)
{
    int at = n < most ? n++ : most;

    for (; at > 0 && scores[at - 1] < score; at--)
        if (at < most) {
            scores[at] = scores[at - 1];
            list[at] = list[at - 1];
        }
    if (at < most) {
        scores[at] = score;
        list[at] = k;
    }
    return n;
}

em_status em_correlate_logs(int64_t dim, int64_t n, const double *x, const double *sd, double *g,
                            double *log_sd, double *rho)
{
    double *by_draw = NULL, mean;
    em_status status = em_allocate_doubles(n * dim, &by_draw);

    if (status)
        return status;
    for (int64_t i = 0; i < dim; i++) {
        double *log_g = g + i * n;
        for (int64_t r = 0; r < n; r++)
            log_g[r] = log(fabs(log_g[r]) + 1e-300);
        log_sd[i] = em_centre_column(n, log_g, &mean);
        for (int64_t r = 0; r < n; r++)
            log_g[r] /= log_sd[i] > 0 ? log_sd[i] : INFINITY;
    }
    for (int64_t k = 0; k < dim; k++)
        for (int64_t r = 0; r < n; r++)
            by_draw[r * dim + k] = sd[k] > 0 ? x[k * n + r] / sd[k] : 0;
    em_multiply_into(dim, n, dim, g, by_draw, rho);
    for (int64_t i = 0; i < dim; i++)
        for (int64_t k = 0; k < dim; k++) {
            double *out = &rho[i * dim + k];
            *out = i == k || !isfinite(*out) ? 0 : *out / (double)n;
        }
    em_release(&by_draw);
    return EM_OK;
}
