/* The second log scale of a parameter, as of a horseshoe's coefficient. */
#include "adaptation/noncentring/noncentring_fit.h"

#include <math.h>
#include <string.h>

/* The log scale of a lower level with which log |g_i| is most correlated; -1: none. */
static int64_t closest_scale(const em_group_search *s, const em_noncentring_row *row, int64_t i)
{
    double most = EM_EVIDENT_CORRELATION;
    int64_t best = -1;

    for (int64_t k = 0; k < s->dim; k++) {
        const double rho = fabs(s->rho[i * s->dim + k]);
        if (rho > most && k != (int64_t)row[i].scale && row[k].level < row[i].level) {
            most = rho;
            best = k;
        }
    }
    return best;
}

/* The log likelihood of a draw of z, from N(0, sigma^2 e^(2 a x)) with the best sigma. */
static double likelihood_at(int64_t n, const double *z, const double *x, double a)
{
    double square = 0;

    for (int64_t r = 0; r < n; r++)
        square += z[r] * z[r] * exp(-2 * a * x[r]);
    return -0.5 * log(square / (double)n + 1e-300);
}

/* The degree with the highest likelihood, and what it gains over 0. */
static double find_degree(const em_group_search *s, const double *z, int64_t k, double *gain)
{
    double y[EM_N_DEGREE], degree = 0;
    const double step = EM_DEGREE_STEP / s->sd[k];
    int top;

    for (int q = 0; q < EM_N_DEGREE; q++)
        y[q] = likelihood_at(s->n, z, s->x + k * s->n, (q - EM_DEGREES) * step);
    *gain = em_find_top(y, &degree, &top) ? y[top] - y[EM_DEGREES] : 0;
    return degree * step;
}

/*
 * The degrees of both log scales from -g / z, which of a normal z is its precision: the logarithm
 * is linear in the log scales. The degrees are exact if the law is normal about 0, and are used
 * only if the residuals show that: the data of a parameter and errors of its location change -g /
 * z.
 */
static bool find_both_degrees(em_group_search *s, const double *z, const double *g, int64_t first,
                              int64_t second, double degree[2])
{
    static const double most_residual = 0.1, least_used = 0.95;
    const double *log_scale[] = {s->x + first * s->n, s->x + second * s->n};
    double triangle[EM_MOST_REGRESSORS][EM_MOST_REGRESSORS] = {{0}}, along[EM_MOST_REGRESSORS];
    double used = 0;
    int n = 0;

    for (int64_t r = 0; r < s->n; r++) {
        const bool is_used = z[r] * g[r] < 0;
        s->of.weight[r] = is_used;
        s->residual[r] = is_used ? 0.5 * log(-g[r] / z[r]) : 0;
        s->column[r] = 1;
        used += is_used;
    }
    if (used < least_used * (double)s->n)
        return false;
    n = em_add_regressor(&s->of, n, s->column, triangle);
    for (int q = 0; q < 2; q++) {
        memcpy(s->column, log_scale[q], (size_t)s->n * sizeof *s->column);
        n = em_add_regressor(&s->of, n, s->column, triangle);
    }
    if (n < 3)
        return false;
    em_project_out(&s->of, n, s->residual, along);
    em_solve_regression(n, triangle, along);
    degree[0] = -along[1];
    degree[1] = -along[2];
    return sqrt(em_weighted_product(&s->of, s->residual, s->residual) / used) <
           most_residual; /* of a log standard deviation */
}

/* Parameter i over the scale of its row, that is z about 0. */
static const double *about_zero(em_group_search *s, const em_noncentring_row *row, int64_t i)
{
    const int64_t k = (int64_t)row->scale;
    const double *x = s->x + i * s->n, *log_scale = s->x + k * s->n;

    for (int64_t r = 0; r < s->n; r++)
        s->factor[r] =
            (x[r] + s->mean[i]) * exp(-row->degree * (log_scale[r] + s->mean[k] - row->origin));
    return s->factor;
}

/*
 * Adds second log scale k if derivatives prove it, or if it gains enough. If the law is about 0,
 * the row keeps no location: where the second scale was not known, its large draws were explained
 * by one. Returns whether it is added.
 */
static bool add_second(em_group_search *s, const double *g, double least, int64_t i, int64_t k,
                       em_noncentring_row *row)
{
    static const double negligible = 0.05; /* as the standard deviation of a log scale */
    const int64_t first = (int64_t)row->scale;
    const double *z = s->panel + i * s->n;
    double degree[2] = {0}, gain = INFINITY;
    const bool is_about_zero =
        find_both_degrees(s, about_zero(s, row, i), g + i * s->n, first, k, degree);

    if (!is_about_zero && !find_both_degrees(s, z, g + i * s->n, first, k, degree)) {
        degree[0] = 0;
        degree[1] = find_degree(s, z, k, &gain);
    }
    if (!(gain > least) || fabs(degree[1]) * s->sd[k] < negligible)
        return false;
    if (is_about_zero) {
        row->shift = 0;
        row->location[0] = -1;
    }
    row->degree += degree[0];
    row->second_degree = degree[1];
    row->second_scale = (double)k;
    row->second_origin = s->mean[k];
    row->width = em_noncentring_width(row->degree, s->sd[first]);
    row->second_width = em_noncentring_width(row->second_degree, s->sd[k]);
    return true;
}

bool em_add_second_scales(em_group_search *s, const double *g, double least,
                          em_noncentring_row *row)
{
    bool found = false;

    for (int64_t i = 0; i < s->dim; i++) {
        const int64_t k = row[i].level > 0 && row[i].information == 0 &&
                                  row[i].form == EM_SCALE_EXP && row[i].second_degree == 0
                              ? closest_scale(s, row, i)
                              : -1;
        if (k >= 0 && add_second(s, g, least, i, k, &row[i]))
            found = true;
    }
    return found;
}
