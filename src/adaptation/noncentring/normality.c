/* How far draws are from normal in the coordinates of a map. */
#include "adaptation/noncentring/noncentring_fit.h"
#include "base/memory.h"
#include "math/linalg.h"

#include <math.h>
#include <string.h>

void em_take_columns(em_group_search *s, double *g)
{
    for (int64_t i = 0; i < s->dim; i++) {
        double *x = s->x + i * s->n;
        for (int64_t r = 0; r < s->n; r++) {
            const double *row = em_thinned_sample(s->samples, s->dim, s->n, r);
            x[r] = row[i];
            g[i * s->n + r] = row[s->dim + i];
        }
        s->sd[i] = em_centre_column(s->n, x, &s->mean[i]);
    }
}

/* The log determinant of the covariance of s->panel, with many parameters of its diagonal. Errors:
 * EM_NONFINITE. */
static em_status log_determinant(const em_group_search *s, double *out)
{
    for (int64_t i = 0; i < s->dim; i++) {
        double mean;
        const double sd = em_centre_column(s->n, s->panel + i * s->n, &mean);
        if (s->dim > EM_MOST_SEARCHED)
            *out += 2 * log(sd);
    }
    if (s->dim > EM_MOST_SEARCHED)
        return isfinite(*out) ? EM_OK : EM_NONFINITE;
    em_gram(s->dim, s->n, s->panel, s->moment);
    const em_status status = em_cholesky(s->dim, s->moment, s->dim);
    for (int64_t i = 0; !status && i < s->dim; i++)
        *out += 2 * log(s->moment[i * s->dim + i]) - log((double)s->n);
    return status;
}

em_status em_transform_samples(const em_noncentring *map, const em_samples *samples, int64_t n,
                               int64_t first, int64_t count, double *panel)
{
    const int64_t dim = map->dim;
    EM_SCOPED double *row = NULL;
    em_status status = em_allocate_doubles(2 * dim, &row);

    for (int64_t r = 0; !status && r < n; r++) {
        const double *sample = em_thinned_sample(samples, dim, n, r);
        memcpy(row, sample, (size_t)(2 * dim) * sizeof *row);
        em_noncentring_from_model(map, row, map->at);
        em_noncentring_pull(map, row, map->at, row + dim);
        for (int64_t i = 0; i < count; i++)
            panel[i * n + r] = row[first + i];
    }
    return status;
}

em_status em_transform_draws(em_group_search *s, bool derivatives)
{
    const int64_t size = s->dim * s->n;

    if (!s->is_transformed) {
        const em_status status =
            em_transform_samples(&s->map, s->samples, s->n, 0, 2 * s->dim, s->transformed);
        if (status)
            return status;
        s->is_transformed = true;
    }
    memcpy(s->panel, s->transformed + (derivatives ? size : 0), (size_t)size * sizeof *s->panel);
    return EM_OK;
}

em_status em_find_departure(em_group_search *s, double *out)
{
    em_status status = EM_OK;

    *out = 0;
    for (int derivatives = 0; !status && derivatives < 2; derivatives++) {
        status = em_transform_draws(s, derivatives);
        status = status ? status : log_determinant(s, out);
    }
    if (status > 0)
        *out = INFINITY;
    return status > 0 ? EM_OK : status;
}
