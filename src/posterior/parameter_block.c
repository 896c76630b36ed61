/* The posterior of a block of the parameters, given the current values of the others. */
#include "base/memory.h"
#include "posterior/inside.h"

#include <string.h>

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
