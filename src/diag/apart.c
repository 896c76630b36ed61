#include "diag/apart.h"

#include "math/order.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static const double far_off = 3;

static double median_of(int64_t n, const double *x, double *scratch)
{
    memcpy(scratch, x, (size_t)n * sizeof *x);
    em_sort_numbers(n, scratch);
    return em_sorted_median(n, scratch);
}

/* False where a draw is not finite. */
static bool find_moments(int64_t n, const double *x, double *mean, double *deviation)
{
    double sum = 0, squares = 0;

    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    *mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++)
        squares += (x[i] - *mean) * (x[i] - *mean);
    *deviation = sqrt(squares / (double)n);
    return isfinite(*mean) && isfinite(*deviation);
}

em_apart em_find_apart(int64_t n_chain, int64_t n_draw, const double *draws, double *scratch)
{
    double *mean = scratch, *deviation = mean + n_chain, *sorted = deviation + n_chain;
    em_apart out = {0};

    for (int64_t c = 0; c < n_chain; c++)
        if (!find_moments(n_draw, draws + c * n_draw, &mean[c], &deviation[c]))
            return out;
    const double centre = median_of(n_chain, mean, sorted);
    const double within = median_of(n_chain, deviation, sorted);
    for (int64_t c = 0; within > 0 && c < n_chain; c++) {
        const double distance = fabs(mean[c] - centre) / within;
        out.count += distance > far_off;
        if (distance > out.distance) {
            out.distance = distance;
            out.chain = c;
        }
    }
    return 2 * out.count < n_chain ? out : (em_apart){0};
}

double em_above_others(int64_t n_chain, const double *mean, int64_t chain, double *scratch)
{
    int64_t n = 0;

    for (int64_t c = 0; c < n_chain; c++)
        if (c != chain && !isnan(mean[c]))
            scratch[n++] = mean[c];
    if (n == 0)
        return NAN;
    em_sort_numbers(n, scratch);
    return mean[chain] - em_sorted_median(n, scratch);
}
