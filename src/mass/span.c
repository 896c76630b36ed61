#include "mass/span.h"
#include "base/memory.h"
#include "mass/mass.h"
#include "math/linalg.h"

#include <math.h>
#include <string.h>

/* Finds an orthonormal basis of the span from Y Y^T = E^T diag(value) E. The basis is value^-1/2 E
 * Y, and the coordinates of Y in it are value^1/2 E. Eigenvalues that are only rounding errors are
 * left out. */
em_status em_span_find_frame(em_vector_span *s)
{
    const int64_t n = s->n_row;
    int64_t first = 0;
    em_status status = em_allocate_doubles(n * n, &s->vector);

    status = status ? status : em_allocate_doubles(n, &s->value);
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

/* Computes rows `which` of vector [order][order] as orthonormal directions [count][dim]. */
static em_status find_directions(const em_vector_span *s, int64_t count, const int64_t *which,
                                 const double *vector, double *direction)
{
    const int64_t m = s->order, n = s->n_row, first = n - m;
    EM_SCOPED double *mix = NULL;
    em_status status = em_allocate(count * n, sizeof *mix, &mix);

    for (int64_t j = 0; !status && j < count; j++)
        for (int64_t k = 0; k < m; k++) {
            const double x = vector[which[j] * m + k] / sqrt(s->value[first + k]);
            for (int64_t i = 0; i < n; i++)
                mix[j * n + i] += x * s->vector[(first + k) * n + i];
        }
    if (!status) {
        em_multiply_into(count, n, s->dim, mix, s->row, direction);
        em_orthonormalise(count, s->dim, direction, s->dim); /* rounding has left a little */
    }
    return status;
}

/* Finds the indices of the eigenvalues farthest from 1. Returns their number. */
static int64_t choose(int64_t n, const double *value, double ratio, int64_t most, int64_t *which)
{
    int64_t low = 0, high = n - 1, count = 0;

    while (count < most && low <= high) {
        const double below = -log(value[low]), above = log(value[high]);
        if (!(fmax(below, above) > log(ratio)))
            break;
        which[count++] = below > above ? low++ : high--;
    }
    return count;
}

em_status em_span_store_directions(const em_vector_span *s, const double *vector,
                                   const double *value, double ratio, int64_t most, double *values)
{
    int64_t which[EM_MASS_MOST_RANK];
    const int64_t count = choose(s->order, value, ratio, most, which);
    const em_status status = find_directions(s, count, which, vector, values + most);

    for (int64_t k = 0; !status && k < count; k++)
        values[k] = value[which[k]];
    return status;
}

void em_directions_clear(int64_t dim, int64_t most, double *values)
{
    memset(values, 0, (size_t)(most * (1 + dim)) * sizeof *values);
    for (int64_t k = 0; k < most; k++)
        values[k] = 1;
}

void em_span_release(em_vector_span *span)
{
    em_release_all(&span->row, &span->vector, &span->value, &span->coordinate);
}
