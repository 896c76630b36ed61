#include "posterior/sums.h"

#include "base/memory.h"
#include "math/binned.h"

#include <string.h>

em_status em_sums_create(int64_t n, em_sums *out)
{
    em_status status;

    out->n = em_stride(n + 1);
    status = em_allocate(out->n, sizeof(double), &out->part);
    if (!status)
        status = em_allocate_doubles(em_binned_size(out->n), &out->bins);
    return status;
}

void em_sums_release(em_sums *s)
{
    em_release_all(&s->part, &s->bins);
}

em_sums em_sums_begin(const em_sums *whole, int64_t n, bool is_one)
{
    const em_sums s = {em_stride(n + 1), whole->part, whole->bins};

    memset(s.part, 0, (size_t)s.n * sizeof *s.part);
    if (!is_one)
        em_binned_clear(s.n, s.bins);
    return s;
}

em_status em_sums_end(const em_sums *s, const em_grid *grid, em_status status)
{
    s->part[s->n - 1] = status < 0;
    em_binned_add(s->n, s->part, s->bins);
    if (grid)
        em_grid_sum_binned(grid, s->n, s->bins);
    em_binned_values(s->n, s->bins, s->part);
    return s->part[s->n - 1] != 0 ? em_grid_share_failure(grid, status) : EM_OK;
}

em_status em_sums_of_one(const em_sums *s, em_status status)
{
    em_binned_single(s->n, s->part);
    return status < 0 ? status : EM_OK;
}
