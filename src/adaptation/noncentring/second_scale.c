/* The second log scale of a parameter, as of a horseshoe's coefficient. */
#include "adaptation/noncentring/noncentring_fit.h"

#include <math.h>
#include <string.h>

/* The correlation of a log derivative with a log scale that counts as evidence for it. */
static const double evident = 0.25;

/* In standard deviations of the log scale. */
static const double degree_step = 0.1;

/* The log scale of a lower level with which log |g_i| is most correlated; -1: none. */
static int64_t closest_scale(const em_group_search *s, const em_noncentring_row *row, int64_t i)
{
    double most = evident;
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
    const double step = degree_step / s->sd[k], *x = s->x + k * s->n;
    const double at_0 = likelihood_at(s->n, z, x, 0);
    double y[EM_N_DEGREE];
    int top = EM_DEGREES;

    for (int q = 0; q < EM_N_DEGREE; q++) {
        y[q] = likelihood_at(s->n, z, x, (q - EM_DEGREES) * step);
        top = y[q] > y[top] ? q : top;
    }
    *gain = top == 0 || top == EM_N_DEGREE - 1 ? 0 : y[top] - at_0;
    if (*gain == 0)
        return 0;
    const double bend = y[top - 1] - 2 * y[top] + y[top + 1],
                 vertex = bend < 0 ? 0.5 * (y[top - 1] - y[top + 1]) / bend : 0;
    return (top - EM_DEGREES + vertex) * step;
}

/*
 * The degrees of both log scales from -g / z, which of a normal z is its precision: the logarithm
 * is linear in the log scales. The degrees are exact if the law is normal about 0, and are used
 * only if the residuals show that: the data of a parameter and errors of its location change -g /
 * z.
 */
static bool find_both_degrees(const em_group_search *s, const double *z, const double *g,
                              int64_t first, int64_t second, double degree[2])
{
    static const double most_residual = 0.1, least_used = 0.95;
    const double *x[] = {s->x + first * s->n, s->x + second * s->n};
    double mean = 0, xx[3] = {0}, xy[2] = {0}, square = 0;
    int64_t n = 0;

    for (int64_t r = 0; r < s->n; r++)
        if (z[r] * g[r] < 0) {
            mean += 0.5 * log(-g[r] / z[r]);
            n++;
        }
    if ((double)n < least_used * (double)s->n)
        return false;
    mean /= (double)n;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t r = 0; r < s->n; r++) {
            if (!(z[r] * g[r] < 0))
                continue;
            const double y = 0.5 * log(-g[r] / z[r]) - mean;
            if (pass == 0) {
                xx[0] += x[0][r] * x[0][r];
                xx[1] += x[0][r] * x[1][r];
                xx[2] += x[1][r] * x[1][r];
                xy[0] += x[0][r] * y;
                xy[1] += x[1][r] * y;
            } else {
                square += pow(y + degree[0] * x[0][r] + degree[1] * x[1][r], 2);
            }
        }
        const double determinant = xx[0] * xx[2] - xx[1] * xx[1];
        degree[0] = -(xy[0] * xx[2] - xy[1] * xx[1]) / determinant;
        degree[1] = -(xy[1] * xx[0] - xy[0] * xx[1]) / determinant;
    }
    return sqrt(square / (double)n) < most_residual; /* of a log standard deviation */
}

/* Parameter i over the scale of its row, that is z about 0. */
static const double *about_zero(em_group_search *s, const em_noncentring_row *row, int64_t i)
{
    const int64_t k = (int64_t)row->scale;
    const double *x = s->x + i * s->n, *log_scale = s->x + k * s->n;

    for (int64_t r = 0; r < s->n; r++)
        s->residual[r] =
            (x[r] + s->mean[i]) * exp(-row->degree * (log_scale[r] + s->mean[k] - row->origin));
    return s->residual;
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
    row->second_width = s->sd[k];
    return true;
}

bool em_add_second_scales(em_group_search *s, const double *g, double least,
                          em_noncentring_row *row)
{
    bool found = false;

    for (int64_t i = 0; i < s->dim; i++) {
        const int64_t k =
            row[i].level > 0 && row[i].information == 0 ? closest_scale(s, row, i) : -1;
        if (k >= 0 && add_second(s, g, least, i, k, &row[i]))
            found = true;
    }
    return found;
}
