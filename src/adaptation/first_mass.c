/* The first mass of a warmup in phases, before there are samples. */
#include "adaptation/adaptation_internal.h"
#include "base/memory.h"
#include "math/order.h"
#include "par/world.h"

#include <math.h>

/* Medians of columns first .. first + n of rows x [n_local_chain][stride] of absolute values, into
 * out[n]; rows are gathered into all. */
static em_status column_medians(em_adapt *adapt, const double *x, int64_t first, int64_t n,
                                double *local, double *all, double *out)
{
    const int64_t n_chain = em_grid_n_chain(adapt->grid);
    double *column = all + n_chain * n;
    em_status status;

    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        for (int64_t i = 0; i < n; i++)
            local[c * n + i] = fabs(x[c * adapt->stride + first + i]);
    status = em_grid_gather_chains(adapt->grid, n, local, all);
    for (int64_t i = 0; !status && i < n; i++) {
        for (int64_t c = 0; c < n_chain; c++)
            column[c] = all[c * n + i];
        em_sort_numbers(n_chain, column);
        out[i] = em_sorted_median(n_chain, column);
    }
    return status;
}

/* W_0 is diagonal. Its entries are the inverse curvature found by the ascents from the starts or,
 * without these, 1 / |g_i|. The median over the chains is used, because single chains may start
 * where gradients are extreme. Columns are gathered in batches, to bound the memory. */
em_status em_warmup_begin(em_adapt *adapt, const em_block *block, const double *inverse_curvature)
{
    const int64_t n_chain = em_grid_n_chain(adapt->grid), dim = adapt->dim;
    const int64_t fit = (1 << 20) / n_chain + 1, batch = fit < dim ? fit : dim;
    const double *x = inverse_curvature ? inverse_curvature : block->gradient;
    double *work = NULL;
    em_mass *mass = NULL;
    em_status status = em_agree(em_allocate(
        adapt->n_local_chain * batch + n_chain * (batch + 1) + dim, sizeof *work, &work));

    if (status)
        return status;
    double *all = work + adapt->n_local_chain * batch, *scale = all + n_chain * (batch + 1);
    for (int64_t first = 0; !status && first < dim; first += batch)
        status = column_medians(adapt, x, first, dim - first < batch ? dim - first : batch, work,
                                all, scale + first);
    for (int64_t i = 0; i < dim; i++) {
        const double clipped = fmin(fmax(scale[i], 1e-10), 1e10);
        scale[i] = inverse_curvature ? clipped : 1 / clipped;
    }
    if (!status)
        status = em_agree(em_mass_of_diagonal(&adapt->form, scale, &mass));
    if (!status) {
        em_mass_destroy(&adapt->pools->mass);
        adapt->pools->mass = mass;
        em_publish_to_chains(adapt);
    }
    em_release(&work);
    return status;
}
