/*
 * The directions of a mass of low rank, by the Fisher divergence, from fewer samples than there are
 * dimensions (Seyboldt, Carlson, Carpenter 2024: nutpie). With s the scales of the diagonal
 * estimate, X = (x - mean) / s and G = (g - mean) s, and V, Lambda of the current mass,
 *
 *     C_x = (n cov X + nu B) / (n + nu),   C_g = (n cov G + nu B^-1) / (n + nu),   nu = 0.1 dim,
 *     B = I + V (Lambda - I) V^T,
 *
 * W C_g W = C_x is solved in the span of X, G and V, outside of which W is I. Of its eigenvectors
 * those are kept whose eigenvalues are out of [1/2, 2], the farthest ones first. Shrunk to the
 * current mass, not to I, a stiff direction is found in some windows from samples that are too few
 * to find it at once (LEARNING 6).
 */
#include "base/memory.h"
#include "mass/fisher.h"
#include "math/linalg.h"

#include <math.h>
#include <string.h>

static const double least_ratio = 2, shrinkage = 0.1;

/* The span of n_row vectors, in coordinates in which they are orthonormal. */
typedef struct span {
    int64_t dim, n, n_prior, n_row; /* n_row = 2 n + n_prior */
    double *row;                    /* [n_row][dim]: X, G of each sample in turn; sqrt(dim) V^T */
    int64_t order;                  /* the dimension of the span */
    double *vector, *value; /* of the Gram matrix: the last `order` rows of [n_row][n_row] */
    double *coordinate;     /* [order][n_row] of each row */
} span;

/* A direction of the current mass weighs as much as a sample does. */
static double prior_length(const span *s)
{
    return sqrt((double)s->dim);
}

static void centre_and_scale(const span *s, const double *scale)
{
    for (int64_t i = 0; i < 2 * s->dim; i++) {
        const double unit = i < s->dim ? 1 / scale[i] : scale[i - s->dim];
        double mean = 0;
        for (int64_t k = 0; k < s->n; k++)
            mean += s->row[k * 2 * s->dim + i] / (double)s->n;
        for (int64_t k = 0; k < s->n; k++)
            s->row[k * 2 * s->dim + i] = (s->row[k * 2 * s->dim + i] - mean) * unit;
    }
}

/* Rows: the samples, then the directions of which the value is not 1. */
static em_status open_span(const em_mass_form *form, const double *current,
                           const em_samples *samples, const double *scale, span *s)
{
    const int64_t dim = form->dim, n = samples->n;
    const double *value = current + dim, *direction = value + form->most_rank;
    em_status status = em_allocate_doubles((2 * n + form->most_rank) * dim, &s->row);

    if (status)
        return status;
    s->dim = dim;
    s->n = n;
    memcpy(s->row, samples->row, (size_t)(2 * n * dim) * sizeof *s->row);
    centre_and_scale(s, scale);
    for (s->n_prior = 0; s->n_prior < form->most_rank && value[s->n_prior] != 1; s->n_prior++)
        for (int64_t i = 0; i < dim; i++)
            s->row[(2 * n + s->n_prior) * dim + i] =
                prior_length(s) * direction[s->n_prior * dim + i];
    s->n_row = 2 * n + s->n_prior;
    return EM_OK;
}

/* Y Y^T = E^T diag(value) E: the orthonormal basis is value^-1/2 E Y, and the coordinates of Y in
 * it value^1/2 E, for the eigenvalues that are not rounding. */
static em_status find_frame(span *s)
{
    const int64_t n = s->n_row;
    int64_t first = 0;
    em_status status = em_allocate_doubles(n * n, &s->vector);

    if (!status)
        status = em_allocate_doubles(n, &s->value);
    if (status)
        return status;
    em_gram(n, s->dim, s->row, s->vector);
    status = em_eigen(n, s->vector, n, s->value);
    if (status)
        return EM_NONFINITE;
    while (first < n && !(s->value[first] > 1e-10 * s->value[n - 1]))
        first++;
    s->order = n - first;
    if (s->order == 0)
        return EM_NONFINITE;
    status = em_allocate_doubles(s->order * n, &s->coordinate);
    for (int64_t k = 0; !status && k < s->order; k++)
        for (int64_t i = 0; i < n; i++)
            s->coordinate[k * n + i] = sqrt(s->value[first + k]) * s->vector[(first + k) * n + i];
    return status;
}

/* out [order][order] = (1 - weight) B^p + weight cov of X (offset 0) or G (1); B^p has the values
 * value^p. `work`: [order][n]. */
static void shrunk_covariance(const span *s, int64_t offset, const double *value, double p,
                              double weight, double *work, double *out)
{
    const int64_t m = s->order, n = s->n_row;

    for (int64_t k = 0; k < m; k++)
        for (int64_t i = 0; i < s->n; i++)
            work[k * s->n + i] = s->coordinate[k * n + 2 * i + offset];
    em_gram(m, s->n, work, out);
    for (int64_t k = 0; k < m * m; k++)
        out[k] *= weight / (double)(s->n - 1);
    for (int64_t k = 0; k < m; k++)
        out[k * (m + 1)] += 1 - weight;
    for (int64_t j = 0; j < s->n_prior; j++) {
        const double *x = s->coordinate + 2 * s->n + j;
        const double factor = (1 - weight) * (pow(value[j], p) - 1) / (double)s->dim;
        for (int64_t k = 0; k < m; k++)
            for (int64_t l = 0; l < m; l++)
                out[k * m + l] += factor * x[k * n] * x[l * n];
    }
}

/* The numbers of the eigenvalues farthest from 1, of n ascending ones; returns how many. */
static int64_t choose(int64_t n, const double *value, int64_t most, int64_t *which)
{
    int64_t low = 0, high = n - 1, count = 0;

    while (count < most && low <= high) {
        const double below = -log(value[low]), above = log(value[high]);
        if (!(fmax(below, above) > log(least_ratio)))
            break;
        which[count++] = below > above ? low++ : high--;
    }
    return count;
}

/* Gram-Schmidt, twice: what rounding has left in the frame. */
static void orthonormalise(int64_t n, int64_t dim, double *row)
{
    for (int64_t k = 0; k < n; k++) {
        double *x = row + k * dim, norm = 0;
        for (int64_t j = 0; j < 2 * k; j++) {
            const double *y = row + j % k * dim;
            double sum = 0;
            for (int64_t i = 0; i < dim; i++)
                sum += x[i] * y[i];
            for (int64_t i = 0; i < dim; i++)
                x[i] -= sum * y[i];
        }
        for (int64_t i = 0; i < dim; i++)
            norm += x[i] * x[i];
        for (int64_t i = 0; i < dim; i++)
            x[i] /= sqrt(norm);
    }
}

/* The eigenvectors `which` of the solution, [order] each in rows, as directions [count][dim]. */
static em_status take_back(const span *s, int64_t count, const int64_t *which, const double *vector,
                           double *direction)
{
    const int64_t m = s->order, n = s->n_row, first = n - m;
    double *mix = NULL;
    em_status status = em_allocate(count * n, sizeof *mix, &mix);

    for (int64_t j = 0; !status && j < count; j++)
        for (int64_t k = 0; k < m; k++) {
            const double x = vector[which[j] * m + k] / sqrt(s->value[first + k]);
            for (int64_t i = 0; i < n; i++)
                mix[j * n + i] += x * s->vector[(first + k) * n + i];
        }
    if (!status) {
        em_multiply_into(count, n, s->dim, mix, s->row, direction);
        orthonormalise(count, s->dim, direction);
    }
    em_release(&mix);
    return status;
}

/* The solution in the span: its eigenvectors into rows of vector [order][order]. */
static em_status solve(const span *s, const double *current, double *vector, double *value)
{
    const int64_t m = s->order, square = m * m;
    const double n = (double)s->n, weight = n / (n + shrinkage * (double)s->dim);
    double *cx = NULL;
    em_status status = em_allocate_doubles(2 * square + em_fisher_mean_work(m) + m * s->n, &cx);

    if (status)
        return status;
    double *cg = cx + square, *work = cg + square;
    shrunk_covariance(s, 0, current + s->dim, 1, weight, work, cx);
    shrunk_covariance(s, 1, current + s->dim, -1, weight, work, cg);
    status = em_fisher_mean(m, cx, cg, work, vector);
    if (!status)
        status = em_eigen(m, vector, m, value);
    em_release(&cx);
    return status;
}

em_status em_fisher_directions(const em_mass_form *form, const double *current, em_samples *samples,
                               double *number)
{
    const int64_t dim = form->dim;
    double *values = number + dim, *directions = values + form->most_rank;
    double *vector = NULL, *value = NULL;
    int64_t which[EM_MASS_MOST_RANK], count = 0;
    span s = {.row = NULL};
    em_status status = EM_OK;

    for (int64_t i = 0; i < dim; i++)
        number[i] = sqrt(number[i]);
    memset(values, 0, (size_t)(form->most_rank * (1 + dim)) * sizeof *values);
    for (int64_t k = 0; k < form->most_rank; k++)
        values[k] = 1;
    if (samples->n < 2)
        return EM_OK;
    status = open_span(form, current, samples, number, &s);
    if (!status)
        status = find_frame(&s);
    if (!status)
        status = em_allocate_doubles(s.order * (s.order + 1), &vector);
    if (!status) {
        value = vector + s.order * s.order;
        status = solve(&s, current, vector, value);
    }
    if (!status) {
        count = choose(s.order, value, form->most_rank, which);
        status = take_back(&s, count, which, vector, directions);
    }
    for (int64_t k = 0; !status && k < count; k++)
        values[k] = value[which[k]];
    em_release(&vector);
    em_release_all(&s.row, &s.vector, &s.value, &s.coordinate);
    return status;
}
