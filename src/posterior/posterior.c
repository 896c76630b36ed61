#include "base/memory.h"
#include "math/binned.h"
#include "math/rng.h"
#include "posterior/inside.h"

#include <string.h>

/* ---- sums over the parts of the data on all shards ---- */

em_status em_sums_create(int64_t n, em_sums *out)
{
    out->n = em_stride(n + 1);
    em_status status = em_allocate(out->n, sizeof(double), &out->part);
    return status ? status : em_allocate_doubles(em_binned_size(out->n), &out->bins);
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

/* ---- the posterior of all parameters ---- */

em_status em_posterior_create(em_model *model, const em_grid *grid, int64_t n_chain,
                              em_posterior **out)
{
    const int64_t n = model->rows.total;
    em_status status = em_allocate(1, sizeof **out, out);

    if (status)
        return status;
    (*out)->model = model;
    (*out)->grid = grid;
    status = em_sums_create(n_chain * (em_stride(model->dim) + 1), &(*out)->likelihood);
    if (!status)
        status = em_own_all(&(*out)->memory, EM_ARRAY((*out)->chosen, em_integers_capacity(n)),
                            EM_ARRAY((*out)->taken, n / 64 + 1));
    if (status)
        em_posterior_destroy(out);
    return status;
}

em_status em_posterior_create_within(em_posterior *parent, int64_t n_chain, int64_t first_chain,
                                     em_posterior **out)
{
    const int64_t panel = n_chain * em_stride(parent->model->dim);
    em_status status = em_allocate(1, sizeof **out, out);

    if (!status)
        status = em_own_all(&(*out)->memory, EM_ARRAY((*out)->theta, panel),
                            EM_ARRAY((*out)->gradient, panel));
    if (status) {
        em_posterior_destroy(out);
        return status;
    }
    (*out)->model = parent->model;
    (*out)->grid = parent->grid;
    (*out)->parent = parent;
    (*out)->first_chain = first_chain;
    return EM_OK;
}

void em_posterior_destroy(em_posterior **posterior)
{
    if (!*posterior)
        return;
    if ((*posterior)->reduction)
        (*posterior)->likelihood.part = NULL;
    em_shard_reduction_destroy(&(*posterior)->reduction);
    em_sums_release(&(*posterior)->likelihood);
    em_sums_release(&(*posterior)->metric);
    em_release_owner(posterior);
}

double em_posterior_bytes_of_bins(const em_posterior *posterior)
{
    return (double)em_binned_size(posterior->likelihood.n) * sizeof(double);
}

const em_model *em_posterior_model(const em_posterior *posterior)
{
    return posterior->model;
}

bool em_posterior_may_fail(const em_posterior *posterior)
{
    return posterior->model->failures != NULL;
}

em_status em_posterior_share_failure(const em_posterior *posterior, em_status status)
{
    return em_grid_share_failure(posterior->grid, status);
}

int64_t em_posterior_evaluations(const em_posterior *posterior)
{
    return posterior->evaluations;
}

/* ---- the posterior of a block of the parameters, given the current values of the others ---- */

em_status em_posterior_create_part(em_posterior *parent, const em_parameters *block,
                                   int64_t n_chain, int64_t first_chain, const double *theta,
                                   em_posterior **out)
{
    const em_status status = em_posterior_create_within(parent, n_chain, first_chain, out);

    if (status)
        return status;
    (*out)->block = block;
    (*out)->held = theta;
    return EM_OK;
}

void em_part_widen(const em_posterior *part, int64_t n, int64_t stride, const int64_t *chain,
                   const double *theta)
{
    const int64_t wide = em_stride(part->model->dim);

    for (int64_t c = 0; c < n; c++) {
        double *row = part->theta + c * wide;
        memcpy(row, part->held + (chain[c] - part->first_chain) * wide, (size_t)wide * sizeof *row);
        memcpy(row + part->block->first, theta + c * stride,
               (size_t)part->block->count * sizeof *row);
    }
}

void em_part_narrow(const em_posterior *part, int64_t n, const double *wide, int64_t stride,
                    double *out)
{
    const int64_t count = part->block->count, width = em_stride(part->model->dim);

    for (int64_t c = 0; c < n; c++) {
        memcpy(out + c * stride, wide + c * width + part->block->first,
               (size_t)count * sizeof *out);
        memset(out + c * stride + count, 0, (size_t)(stride - count) * sizeof *out);
    }
}

em_query em_part_query(const em_posterior *part, const em_query *query)
{
    em_query wide = *query;

    em_part_widen(part, query->n_chain, query->stride, query->chain, query->theta);
    wide.stride = em_stride(part->model->dim);
    wide.theta = part->theta;
    wide.gradient = part->gradient;
    wide.block = part->block;
    return wide;
}
