#include "adaptation/trajectory/trajectory_criterion.h"

#include <math.h>

int64_t em_lag_size(int64_t dim)
{
    return 1 + 5 * dim;
}

void em_lag_observe(int64_t dim, const double *x, double n_steps, int64_t iteration, double *sums)
{
    double *sum = sums + 1, *square = sum + dim, *product = square + dim;
    double *first = product + dim, *last = first + dim;

    sums[0] += n_steps;
    for (int64_t i = 0; i < dim; i++) {
        sum[i] += x[i];
        square[i] += x[i] * x[i];
        if (iteration == 0)
            first[i] = x[i];
        else
            product[i] += x[i] * last[i];
        last[i] = x[i];
    }
}

/* sum (x_t - m)(x_t-1 - m) = sum x_t x_t-1 - m (2 sum x - first - last) + n m^2 over the n pairs */
void em_lag_estimate(int64_t dim, double n_chain, double length, const double *pooled, double *r,
                     double *n_steps)
{
    const double *sum = pooled + 1, *square = sum + dim, *product = square + dim;
    const double *first = product + dim, *last = first + dim;
    const double n = n_chain * length, n_pair = n_chain * (length - 1);

    *n_steps = pooled[0] / n;
    for (int64_t i = 0; i < dim; i++) {
        const double mean = sum[i] / n, variance = square[i] / n - mean * mean;
        const double covariance =
            (product[i] - mean * (2 * sum[i] - first[i] - last[i])) / n_pair + mean * mean;
        r[i] = fmin(fmax(variance > 0 ? covariance / variance : 0.995, -0.9), 0.995);
    }
}

bool em_lag_is_long(int64_t dim, const double *r)
{
    for (int64_t i = 0; i < dim; i++)
        if (r[i] > 0.6)
            return true;
    return false;
}

static void efficiencies(int64_t dim, const double *r, double n_steps, double *out)
{
    for (int64_t i = 0; i < dim; i++)
        out[i] = (1 - r[i]) / (1 + r[i]) / n_steps;
}

/* Whether coordinate i is among the `count` least efficient ones. */
static bool is_among_worst(int64_t dim, const double *efficiency, int64_t i, int64_t count)
{
    int64_t worse = 0;

    for (int64_t k = 0; k < dim && worse < count; k++)
        worse += efficiency[k] < efficiency[i] || (efficiency[k] == efficiency[i] && k < i);
    return worse < count;
}

bool em_trajectory_is_better(int64_t dim, const double *r_short, double steps_short,
                             const double *r_long, double steps_long, double *scratch)
{
    const double least_gain = 0.85;
    const int64_t count = dim < 20 ? 1 : dim < 30 ? 2 : 3;
    double *before = scratch, *after = scratch + dim;
    double worst_before = INFINITY, worst_after = INFINITY, gain = 0, n = 0;

    efficiencies(dim, r_short, steps_short, before);
    efficiencies(dim, r_long, steps_long, after);
    for (int64_t i = 0; i < dim; i++) {
        worst_before = fmin(worst_before, before[i]);
        worst_after = fmin(worst_after, after[i]);
        if (is_among_worst(dim, before, i, count) || is_among_worst(dim, after, i, count)) {
            gain += log(after[i] / before[i]);
            n++;
        }
    }
    return worst_after > least_gain * worst_before || gain / n > log(least_gain);
}
