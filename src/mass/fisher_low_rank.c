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
#include "mass/span.h"
#include "math/linalg.h"

#include <math.h>
#include <string.h>

static const double least_ratio = 2, shrinkage = 0.1;

/* The rows are X and G of each sample in turn, and then sqrt(dim) V^T. */
typedef struct samples_span {
    em_vector_span all;
    int64_t n, n_prior; /* all.n_row = 2 n + n_prior */
} samples_span;

static void centre_and_scale(const samples_span *s, const double *scale)
{
    const int64_t dim = s->all.dim;
    double *row = s->all.row;

    for (int64_t i = 0; i < 2 * dim; i++) {
        const double unit = i < dim ? 1 / scale[i] : scale[i - dim];
        double mean = 0;
        for (int64_t k = 0; k < s->n; k++)
            mean += row[k * 2 * dim + i] / (double)s->n;
        for (int64_t k = 0; k < s->n; k++)
            row[k * 2 * dim + i] = (row[k * 2 * dim + i] - mean) * unit;
    }
}

/* Opens a span of the samples and then the directions whose value is not 1. */
static em_status open_span(const em_mass_form *form, const double *current,
                           const em_samples *samples, const double *scale, samples_span *s)
{
    const int64_t dim = form->dim, n = samples->n;
    const double *value = current + dim, *direction = value + form->most_rank;
    em_status status = em_allocate_doubles((2 * n + form->most_rank) * dim, &s->all.row);

    if (status)
        return status;
    s->all.dim = dim;
    s->n = n;
    memcpy(s->all.row, samples->row, (size_t)(2 * n * dim) * sizeof *s->all.row);
    centre_and_scale(s, scale);
    /* A direction of the current mass has the length sqrt(dim): the weight of one sample. */
    for (s->n_prior = 0; s->n_prior < form->most_rank && value[s->n_prior] != 1; s->n_prior++)
        for (int64_t i = 0; i < dim; i++)
            s->all.row[(2 * n + s->n_prior) * dim + i] =
                sqrt((double)dim) * direction[s->n_prior * dim + i];
    s->all.n_row = 2 * n + s->n_prior;
    return EM_OK;
}

/* out [order][order] = (1 - weight) B^p + weight cov of X (offset 0) or G (1); B^p has the values
 * value^p. `work`: [order][n]. */
static void shrunk_covariance(const samples_span *s, int64_t offset, const double *value, double p,
                              double weight, double *work, double *out)
{
    const int64_t m = s->all.order, n = s->all.n_row;

    for (int64_t k = 0; k < m; k++)
        for (int64_t i = 0; i < s->n; i++)
            work[k * s->n + i] = s->all.coordinate[k * n + 2 * i + offset];
    em_gram(m, s->n, work, out);
    for (int64_t k = 0; k < m * m; k++)
        out[k] *= weight / (double)(s->n - 1);
    for (int64_t k = 0; k < m; k++)
        out[k * (m + 1)] += 1 - weight;
    for (int64_t j = 0; j < s->n_prior; j++) {
        const double *x = s->all.coordinate + 2 * s->n + j;
        const double factor = (1 - weight) * (pow(value[j], p) - 1) / (double)s->all.dim;
        for (int64_t k = 0; k < m; k++)
            for (int64_t l = 0; l < m; l++)
                out[k * m + l] += factor * x[k * n] * x[l * n];
    }
}

/* Solves W C_g W = C_x in the span. The eigenvectors of W are the rows of vector [order][order]. */
static em_status solve(const samples_span *s, const double *current, double *vector, double *value)
{
    const int64_t m = s->all.order, square = m * m;
    const double n = (double)s->n, weight = n / (n + shrinkage * (double)s->all.dim);
    EM_SCOPED double *cx = NULL;
    em_status status = em_allocate_doubles(2 * square + em_fisher_mean_work(m) + m * s->n, &cx);

    if (status)
        return status;
    double *cg = cx + square, *work = cg + square;
    shrunk_covariance(s, 0, current + s->all.dim, 1, weight, work, cx);
    shrunk_covariance(s, 1, current + s->all.dim, -1, weight, work, cg);
    status = em_fisher_mean(m, cx, cg, work, vector);
    return status ? status : em_eigen(m, vector, m, value);
}

em_status em_fisher_directions(const em_mass_form *form, const double *current, em_samples *samples,
                               double *number)
{
    EM_SCOPED double *vector = NULL;
    samples_span s = {.n = 0};

    for (int64_t i = 0; i < form->dim; i++)
        number[i] = sqrt(number[i]); /* scales from variances */
    em_directions_clear(form->dim, form->most_rank, number + form->dim);
    if (samples->n < 2)
        return EM_OK;
    em_status status = open_span(form, current, samples, number, &s);
    status = status ? status : em_span_find_frame(&s.all);
    status = status ? status : em_allocate_doubles(s.all.order * (s.all.order + 1), &vector);
    double *value = status ? NULL : vector + s.all.order * s.all.order;
    status = status ? status : solve(&s, current, vector, value);
    if (!status)
        status = em_span_store_directions(&s.all, vector, value, least_ratio, form->most_rank,
                                          number + form->dim);
    em_span_release(&s.all);
    return status;
}
