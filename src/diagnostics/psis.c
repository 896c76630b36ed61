#include "diagnostics/psis.h"

#include "base/memory.h"
#include "diagnostics/rank.h"

#include <float.h>
#include <math.h>

struct em_psis {
    em_owner memory;        /* of its arrays */
    int64_t n_draw, n_tail; /* the draws with the largest weights that are smoothed, at most */
    double *log_weight, *excess;
    em_sorted *sorted, *scratch;
};

em_status em_psis_create(int64_t n_draw, double r_eff, em_psis **out)
{
    em_status status = em_allocate(1, sizeof **out, out);
    em_psis *psis = *out;

    if (status)
        return status;
    psis->n_draw = n_draw;
    psis->n_tail = em_psis_tail(n_draw, r_eff);
    status = em_own_all(&psis->memory, EM_ARRAY(psis->log_weight, n_draw),
                        EM_ARRAY(psis->excess, psis->n_tail), EM_ARRAY(psis->sorted, n_draw),
                        EM_ARRAY(psis->scratch, n_draw));
    if (status)
        em_release_owner(out);
    return status;
}

int64_t em_psis_tail(int64_t n_draw, double r_eff)
{
    const double n = (double)n_draw;

    return (int64_t)ceil(fmin(n / 5, 3 * sqrt(n / r_eff)));
}

double em_psis_good_k(int64_t n_draw)
{
    return fmin(1 - 1 / log10((double)n_draw), 0.7);
}

/* ---------------------------------------------------------------- the generalised Pareto */

/* Mean of log(1 - b x): the shape that goes with b. */
static double shape_at(double b, int64_t n, const double *x)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += log1p(-b * x[i]);
    return sum / (double)n;
}

/* Fits a generalised Pareto distribution: the posterior mean of b = -shape / scale on a grid, and a
 * shape shrunk towards 1/2. */
void em_psis_fit(int64_t n, const double *excess, double *shape, double *scale)
{
    enum { MOST = 1024 };
    const double quartile = excess[(int64_t)((double)n / 4 + 0.5) - 1], count = (double)n;
    const int m = (int)fmin(30 + floor(sqrt(count)), MOST), prior_quartiles = 3, prior_n = 10;
    double b[MOST], profile[MOST], weight[MOST], sum = 0, mean = 0;

    for (int i = 0; i < m; i++) {
        b[i] = (1 - sqrt(m / (i + 0.5))) / (prior_quartiles * quartile) + 1 / excess[n - 1];
        const double k = shape_at(b[i], n, excess);
        profile[i] = count * (log(-b[i] / k) - k - 1);
    }
    for (int i = 0; i < m; i++) {
        double others = 0;
        for (int j = 0; j < m; j++)
            others += exp(profile[j] - profile[i]);
        weight[i] = 1 / others;
        if (weight[i] < 10 * DBL_EPSILON)
            weight[i] = 0;
        sum += weight[i];
    }
    for (int i = 0; i < m; i++)
        if (weight[i] != 0)
            mean += b[i] * weight[i] / sum;
    const double k = shape_at(mean, n, excess);
    *scale = -k / mean;
    *shape = (count * k + prior_n * 0.5) / (count + prior_n);
}

/* Its quantile. */
static double pareto_quantile(double p, double shape, double scale)
{
    const double log_rest = -log1p(-p);

    return scale * (fabs(shape) < DBL_EPSILON ? log_rest : expm1(shape * log_rest) / shape);
}

/* ---------------------------------------------------------------- an observation */

/* Log weights, the largest of them 0, in ascending order; false where one is not finite. */
static bool sort_weights(em_psis *psis, const double *log_likelihood, double *least)
{
    *least = INFINITY;
    for (int64_t i = 0; i < psis->n_draw; i++) {
        if (!isfinite(log_likelihood[i]))
            return false;
        *least = fmin(*least, log_likelihood[i]);
    }
    for (int64_t i = 0; i < psis->n_draw; i++)
        psis->log_weight[i] = *least - log_likelihood[i];
    em_sort(psis->n_draw, psis->log_weight, psis->sorted, psis->scratch);
    return true;
}

/* Replaces the weights of the tail by quantiles of the fitted distribution, at most the largest
 * weight; returns k. */
static double smooth(em_psis *psis, int64_t *n_smoothed)
{
    const int64_t n = psis->n_draw, at = n - psis->n_tail - 1;
    const double cut = fmax(psis->sorted[at < 0 ? 0 : at].value, log(DBL_MIN)), base = exp(cut);
    double shape, scale;
    int64_t first = n;

    *n_smoothed = 0;
    while (first > 0 && psis->sorted[first - 1].value > cut)
        first--;
    const int64_t n_tail = n - first;
    if (n > EM_PSIS_TOO_FEW && psis->sorted[0].value == 0)
        return -INFINITY;
    if (n_tail < EM_PSIS_LEAST_TAIL)
        return INFINITY;
    for (int64_t i = 0; i < n_tail; i++)
        psis->excess[i] = base * expm1(psis->sorted[first + i].value - cut);
    em_psis_fit(n_tail, psis->excess, &shape, &scale);
    if (!isfinite(shape) || !(scale > 0))
        return INFINITY;
    for (int64_t i = 0; i < n_tail; i++) {
        const double p = ((double)i + 0.5) / (double)n_tail;
        psis->excess[i] = fmin(log(base + pareto_quantile(p, shape, scale)), 0);
    }
    *n_smoothed = n_tail;
    return shape;
}

em_psis_point em_psis_leave_out(em_psis *psis, const double *log_likelihood)
{
    const int64_t n = psis->n_draw;
    double least, most, weights = 0, weighted = 0, likelihood = 0;
    int64_t n_smoothed;

    if (!sort_weights(psis, log_likelihood, &least))
        return (em_psis_point){NAN, NAN, NAN};
    most = least - psis->sorted[0].value;
    const double k = smooth(psis, &n_smoothed);
    for (int64_t i = 0; i < n; i++) {
        const double raw = psis->sorted[i].value;
        const double smoothed = i < n - n_smoothed ? raw : psis->excess[i - (n - n_smoothed)];
        weights += exp(smoothed);
        weighted += exp(smoothed - raw);
        likelihood += exp(least - raw - most);
    }
    return (em_psis_point){
        .lpd = most + log(likelihood / (double)n), .elpd = least + log(weighted / weights), .k = k};
}
