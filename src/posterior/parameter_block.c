/* The posterior of a block of the parameters; the others have their current values. */
#include "base/memory.h"
#include "posterior/inside.h"

#include <string.h>

em_status em_posterior_create_part(em_posterior *parent, const em_parameters *block,
                                   int64_t n_chain, int64_t first_chain, const double *theta,
                                   em_posterior **out)
{
    const int64_t panel = n_chain * em_stride(parent->model->dim);
    em_posterior *part = NULL;
    em_status status = em_allocate(1, sizeof *part, &part);

    *out = NULL;
    if (!status)
        status = em_allocate_all(EM_ARRAY(part->theta, panel), EM_ARRAY(part->gradient, panel));
    if (status) {
        em_posterior_destroy(&part);
        return status;
    }
    part->model = parent->model;
    part->grid = parent->grid;
    part->parent = parent;
    part->block = block;
    part->first_chain = first_chain;
    part->held = theta;
    *out = part;
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
