#include "adaptation/noncentring/noncentring_fit.h"

#include <math.h>
#include <string.h>

/* The least gain in log likelihood of a draw over a constant variance, beyond what chance adds. */
static const double least_gain = 0.05;

/* The least gain by the constant part of a variance, beyond what chance adds. */
static const double least_of_constant = 0.01;

/* A fit to parameter i of the form that em_fit_means fits. */
typedef struct mean_fit {
    int64_t i;
    bool is_about_zero;   /* m is 0; only with q = 0 */
    double shift, change; /* m and c - m, of x_i less its mean */
    double left;          /* - log likelihood of a draw */
} mean_fit;

/* Fits at q. s->factor holds e^(2 a x_k). With q = 0 there is no c. */
static bool fit_mean_at(em_group_search *s, double q, mean_fit *f)
{
    double triangle[EM_MOST_REGRESSORS][EM_MOST_REGRESSORS] = {{0}}, along[EM_MOST_REGRESSORS];
    const double *g = s->panel + f->i * s->n;
    double log_variance = 0;
    int n = 0;

    for (int64_t r = 0; r < s->n; r++) {
        const double variance = s->factor[r] + q;
        s->of.weight[r] = 1 / (variance * (double)s->n);
        log_variance += log(variance) / (double)s->n;
        s->column[r] = 1;
        s->residual[r] = s->x[f->i * s->n + r] + (f->is_about_zero ? s->mean[f->i] : 0);
    }
    if (!f->is_about_zero)
        n = em_add_regressor(&s->of, n, s->column, triangle);
    if (q > 0) {
        for (int64_t r = 0; r < s->n; r++)
            s->column[r] = q / (s->factor[r] + q);
        n = em_add_regressor(&s->of, n, s->column, triangle);
    }
    for (int64_t r = 0; r < s->n; r++)
        s->column[r] = (s->factor[r] + q) * g[r];
    if (n < !f->is_about_zero + (q > 0) || em_add_regressor(&s->of, n, s->column, triangle) == n)
        return false;
    em_project_out(&s->of, n + 1, s->residual, along);
    f->left =
        0.5 * (log(em_weighted_product(&s->of, s->residual, s->residual) + 1e-300) + log_variance);
    em_solve_regression(n + 1, triangle, along);
    f->shift = f->is_about_zero ? -s->mean[f->i] : along[0];
    f->change = q > 0 ? along[1] : 0;
    return along[n] < 0;
}

/* Minus the log likelihood of a draw if the variance is constant. */
static double left_by_constant(em_group_search *s, int64_t i)
{
    int n;

    for (int64_t r = 0; r < s->n; r++) {
        s->of.weight[r] = 1 / (double)s->n;
        s->column[r] = 1;
    }
    n = em_add_regressor(&s->of, 0, s->column, NULL);
    memcpy(s->column, s->panel + i * s->n, (size_t)s->n * sizeof *s->column);
    n = em_add_regressor(&s->of, n, s->column, NULL);
    memcpy(s->residual, s->x + i * s->n, (size_t)s->n * sizeof *s->residual);
    em_project_out(&s->of, n, s->residual, NULL);
    return 0.5 * log(em_weighted_product(&s->of, s->residual, s->residual) + 1e-300);
}

/* The best q for parameter i; NaN: none fits. It is 0 unless a constant variance is evident: with q
 * nearly 0 its location c is anywhere. Then m is 0, too, unless it is evident. */
static double find_mean(em_group_search *s, mean_fit *f)
{
    static const double golden = 0.6180339887498949, lowest = -10, highest = 6, grid = 0.5;
    const double chance = EM_GAIN_BY_CHANCE / (double)s->n, evident = least_of_constant + chance;
    double best = NAN, least = INFINITY;

    for (double log_q = lowest; log_q <= highest; log_q += grid)
        if (fit_mean_at(s, exp(log_q), f) && f->left < least) {
            least = f->left;
            best = log_q;
        }
    double low = best - grid, high = best + grid;
    for (int step = 0; step < 60 && !isnan(best); step++) {
        const double third = (1 - golden) * (high - low);
        mean_fit at_low = *f, at_high = *f;
        fit_mean_at(s, exp(low + third), &at_low);
        fit_mean_at(s, exp(high - third), &at_high);
        if (at_low.left < at_high.left)
            high = high - third;
        else
            low = low + third;
    }
    const double q = exp(0.5 * (low + high));
    const bool is_found = !isnan(q) && fit_mean_at(s, q, f);
    mean_fit simpler = *f;
    if (!fit_mean_at(s, 0, &simpler) || (is_found && simpler.left - f->left > evident))
        return is_found ? q : NAN;
    *f = simpler;
    simpler.is_about_zero = true;
    if (fit_mean_at(s, 0, &simpler) && simpler.left - f->left < chance)
        *f = simpler;
    return 0;
}

void em_fit_means(em_group_search *s, double degree, em_group_fit *group)
{
    const int64_t k = group->scale;
    const double least = least_gain + EM_GAIN_BY_CHANCE / (double)s->n;
    const uint32_t used = em_groups_under(s, k);

    group->n = 0;
    em_scale_precision(s, k, -degree);
    for (int64_t i = 0; i < s->dim; i++) {
        mean_fit f = {.i = i};
        if (!s->is_location[i] || !em_may_join(s, group, used, i))
            continue;
        const double q = find_mean(s, &f), constant = left_by_constant(s, i);
        if (isnan(q) || !(constant - f.left > least))
            continue;
        group->child[group->n] = i;
        group->degree[group->n] = -degree;
        group->gain[group->n++] = constant - f.left;
        s->conditional[i] =
            (em_noncentring_row){.level = 1,
                                 .scale = (double)k,
                                 .degree = q > 0 ? -degree : degree,
                                 .origin = s->mean[k],
                                 .width = em_noncentring_width(degree, s->sd[k]),
                                 .shift = f.shift + s->mean[i],
                                 .location = {-1, -1, -1, -1},
                                 .information = q,
                                 .centre = f.shift + f.change + s->mean[i],
                                 .form = q > 0 ? EM_SCALE_ADDS_VARIANCES : EM_SCALE_EXP};
    }
}
