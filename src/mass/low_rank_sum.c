/*
 * The mass of low rank whose inverse is a sum of those of others, on some of the coordinates:
 *
 *     W^-1 = sum_j w_j S_j^-1 (I + V_j (Lambda_j^-1 - I) V_j^T) S_j^-1.
 *
 * With T^-2 = sum_j w_j S_j^-2 it is T^-1 (I + U E U^T) T^-1, where U has the columns T S_j^-1 v
 * and E = diag(w_j (1 / lambda - 1)). In an orthonormal basis O of the columns, U E U^T = O H O^T;
 * an eigenvalue h of the small H is a direction of W in which it is 1 / (1 + h) in place of 1.
 */
#include "mass/low_rank_sum.h"
#include "base/memory.h"
#include "mass/span.h"
#include "math/linalg.h"

#include <math.h>
#include <string.h>

static void set_scales(int64_t first, const em_mass_form *form, int n, const em_low_rank_term *term,
                       double *number)
{
    for (int64_t i = 0; i < form->dim; i++) {
        double precision = 0;
        for (int j = 0; j < n; j++) {
            const double scale = term[j].number[first + i];
            precision += term[j].weight / (scale * scale);
        }
        number[i] = 1 / sqrt(precision);
    }
}

/* Opens a span with the columns of U as rows, and computes E. */
static em_status open_span(int64_t first, const em_mass_form *form, int n,
                           const em_low_rank_term *term, const double *scale, em_vector_span *span,
                           double **factor)
{
    int64_t most = 1;

    for (int j = 0; j < n; j++)
        most += term[j].rank;
    em_status status = em_allocate_all(EM_ARRAY(span->row, most * form->dim), //
                                       EM_ARRAY(*factor, most));
    span->dim = form->dim;
    for (int j = 0; !status && j < n; j++) {
        const double *s = term[j].number, *value = s + term[j].dim;
        for (int64_t k = 0; k < term[j].rank; k++) {
            const double *v = value + term[j].rank + k * term[j].dim;
            if (value[k] == 1)
                continue;
            for (int64_t i = 0; i < form->dim; i++)
                span->row[span->n_row * form->dim + i] = scale[i] / s[first + i] * v[first + i];
            (*factor)[span->n_row++] = term[j].weight * (1 / value[k] - 1);
        }
    }
    return status;
}

/* Computes 1 / (1 + h) for all eigenvalues h of H, in ascending order, and the eigenvectors in
 * rows. */
static em_status solve(const em_vector_span *span, const double *factor, double *vector,
                       double *value)
{
    const int64_t m = span->order, n = span->n_row;

    for (int64_t k = 0; k < m; k++)
        for (int64_t l = 0; l < m; l++) {
            double sum = 0;
            for (int64_t i = 0; i < n; i++)
                sum -= span->coordinate[k * n + i] * factor[i] * span->coordinate[l * n + i];
            vector[k * m + l] = sum;
        }
    em_status status = em_eigen(m, vector, m, value);
    for (int64_t k = 0; !status && k < m; k++) {
        value[k] = 1 / (1 - value[k]);
        status = value[k] > 0 && isfinite(value[k]) ? EM_OK : EM_NONFINITE;
    }
    return status;
}

static em_status add_directions(const em_mass_form *form, em_vector_span *span,
                                const double *factor, double *number)
{
    EM_SCOPED double *vector = NULL, *value = NULL;
    em_status status = em_span_find_frame(span);

    if (!status)
        status = em_allocate_all(EM_ARRAY(vector, span->order * span->order),
                                 EM_ARRAY(value, span->order));
    status = status ? status : solve(span, factor, vector, value);
    return status ? status
                  : em_span_store_directions(span, vector, value, 1, form->most_rank,
                                             number + form->dim);
}

em_status em_low_rank_sum(int64_t first, const em_mass_form *form, int n,
                          const em_low_rank_term *term, double *number)
{
    EM_SCOPED double *factor = NULL;
    EM_SCOPED_BY(em_span_release) em_vector_span span = {.n_row = 0};

    set_scales(first, form, n, term, number);
    em_directions_clear(form->dim, form->most_rank, number + form->dim);
    em_status status = open_span(first, form, n, term, number, &span, &factor);
    if (!status && span.n_row > 0)
        status = add_directions(form, &span, factor, number);
    return status;
}

/* The variance of draws along a direction, shrunk to `prior` with the weight of five draws. */
static double variance_along(int64_t dim, const em_samples *draws, const double *scale,
                             const double *direction, double prior)
{
    const double weight = 5;
    double mean = 0, square = 0; /* by Welford */

    for (int64_t k = 0; k < draws->n; k++) {
        double x = 0;
        for (int64_t i = 0; i < dim; i++)
            x += draws->row[k * 2 * dim + i] / scale[i] * direction[i];
        const double before = x - mean;
        mean += before / (double)(k + 1);
        square += before * (x - mean);
    }
    return (square + weight * prior) / (fmax((double)draws->n - 1, 0) + weight);
}

void em_low_rank_covariance(const em_mass_form *form, const double *mass, const double *variance,
                            const em_samples *draws, double *number)
{
    const int64_t dim = form->dim, rank = form->most_rank;
    double *value = number + dim, *direction = value + rank;

    memcpy(number, mass, (size_t)form->ops->size(form) * sizeof *number);
    for (int64_t k = 0; k < rank; k++)
        if (value[k] != 1)
            value[k] = variance_along(dim, draws, mass, direction + k * dim, value[k]);
    for (int64_t i = 0; i < dim; i++) {
        double sum = 1;
        for (int64_t k = 0; k < rank; k++)
            sum += (value[k] - 1) * direction[k * dim + i] * direction[k * dim + i];
        number[i] = sqrt(variance[i] / sum);
    }
}

int64_t em_low_rank_most(int64_t dim)
{
    return em_least(em_least((INT64_C(1) << 20) / dim, dim), EM_MASS_MOST_RANK);
}
