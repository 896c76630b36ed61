#include "sampler/kernel/steep_points.h"

#include <math.h>
#include <string.h>

em_status em_steep_points_create(em_owner *owner, int64_t first_chain, int64_t n_chain, int64_t dim,
                                 em_steep_points *out)
{
    const int64_t stride = em_stride(dim);

    *out = (em_steep_points){.first_chain = first_chain,
                             .n_chain = n_chain,
                             .stride = stride,
                             .limit = (double)dim + 10 * sqrt(2 * (double)dim) + 20};
    const em_status status =
        em_own_all(owner, EM_ARRAY(out->theta, n_chain * stride),
                   EM_ARRAY(out->log_density, n_chain), EM_ARRAY(out->met, n_chain));
    for (int64_t c = 0; !status && c < n_chain; c++)
        out->log_density[c] = -INFINITY;
    return status;
}

void em_steep_points_take(em_steep_points *points, int64_t chain, double square, double log_density,
                          const double *theta)
{
    const int64_t c = chain - points->first_chain;

    if (points->met[c] || !(square > points->limit) || !isfinite(square))
        return;
    points->met[c] = true;
    if (!isfinite(log_density) || !(log_density > points->log_density[c]))
        return;
    points->log_density[c] = log_density;
    memcpy(points->theta + c * points->stride, theta, (size_t)points->stride * sizeof *theta);
}
