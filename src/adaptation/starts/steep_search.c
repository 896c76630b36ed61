#include "adaptation/starts/steep_search.h"

#include "base/memory.h"
#include "par/message.h"

#include <math.h>
#include <string.h>

/* Positions that are kept of all chains together, but at least LEAST_EACH of each. */
enum { KEPT = 256, LEAST_EACH = 2 };

em_status em_steep_search_create(em_owner *owner, em_grid *grid, int64_t dim, em_steep_search *out)
{
    const int64_t n_local = em_grid_n_local_chain(grid);

    *out = (em_steep_search){.most = em_most(KEPT / em_grid_n_chain(grid), LEAST_EACH), .every = 1};
    const em_status status =
        em_steep_points_create(owner, em_grid_first_chain(grid), n_local, dim, &out->points);
    return status
               ? status
               : em_own_all(owner, EM_ARRAY(out->kept, n_local * out->most * out->points.stride));
}

/* Drops the positions from iterations that are no multiples of twice `every`. */
static void thin(em_steep_search *s)
{
    const size_t row = (size_t)s->points.stride * sizeof(double);
    int64_t n = 0;

    for (int64_t i = 0; i < s->n; i++) {
        if ((s->last / s->every - (s->n - 1 - i)) % 2 != 0)
            continue;
        for (int64_t c = 0; c < s->points.n_chain; c++) {
            double *kept = s->kept + c * s->most * s->points.stride;
            memmove(kept + n * s->points.stride, kept + i * s->points.stride, row);
        }
        n++;
    }
    s->n = n;
    s->every *= 2;
}

void em_steep_search_observe(em_steep_search *s, const em_block *block, int64_t iteration)
{
    const size_t row = (size_t)s->points.stride * sizeof(double);

    if (!s->kept || iteration % s->every != 0)
        return;
    if (s->n == s->most)
        thin(s);
    if (iteration % s->every != 0)
        return;
    for (int64_t c = 0; c < block->n_chain; c++)
        memcpy(s->kept + (c * s->most + s->n) * s->points.stride, block->theta + c * block->stride,
               row);
    s->n++;
    s->last = iteration;
}

bool em_steep_search_has_points(const em_steep_search *search)
{
    int64_t n = 0;

    for (int64_t c = 0; search->kept && c < search->points.n_chain; c++)
        n += isfinite(search->points.log_density[c]);
    em_world_sum(1, &n);
    return n > 0;
}

em_status em_steep_search_visit(em_steep_search *s, const em_visitor *visitor)
{
    double numbers[] = {(double)s->n, (double)s->every, (double)s->last};
    em_status status = visitor->shared(visitor->context, "steep_kept", 3, numbers);

    if (!status && !(numbers[0] >= 0 && numbers[0] <= (double)s->most && numbers[1] >= 1))
        status =
            em_fail(EM_EDATA, "a checkpoint has kept %g positions of a chain, expected 0 to %d",
                    numbers[0], (int)s->most);
    if (!status) {
        s->n = (int64_t)numbers[0];
        s->every = (int64_t)numbers[1];
        s->last = (int64_t)numbers[2];
        status = visitor->chains(visitor->context, "steep_density", 1, s->points.log_density);
    }
    if (!status)
        status =
            visitor->chains(visitor->context, "steep_point", s->points.stride, s->points.theta);
    return status ? status
                  : visitor->chains(visitor->context, "steep_positions", s->most * s->points.stride,
                                    s->kept);
}
