#include "sampler/gradient_free/proposals.h"

#include "base/memory.h"
#include "math/rng.h"

#include <string.h>

const em_stat em_proposals_stats[] = {EM_STAT_LP, EM_STAT_ACCEPTANCE_RATE, EM_STAT_STEP_SIZE,
                                      EM_STAT_N_STEPS, EM_STAT_COUNT};

em_status em_proposals_create(em_owner *owner, int64_t n, int64_t dim, em_proposals *out)
{
    const int64_t panel = n * em_stride(dim);

    *out = (em_proposals){.n = n, .dim = dim, .stride = em_stride(dim)};
    return em_own_all(owner, EM_ARRAY(out->z, panel), EM_ARRAY(out->direction, panel),
                      EM_ARRAY(out->theta, panel), EM_ARRAY(out->gradient, panel),
                      EM_ARRAY(out->log_density, n));
}

void em_proposals_draw(em_proposals *proposals, const em_step_context *context, int64_t chain,
                       int64_t number, int64_t r)
{
    const em_stream stream = {context->seed, (uint64_t)chain, (uint64_t)context->iteration,
                              EM_RNG_MOMENTUM};
    const int64_t dim = proposals->dim, room = (dim + 15) / 16 * 16;
    double *z = proposals->z + r * proposals->stride;

    em_normals_from(&stream, number * room, dim, z);
    memset(z + dim, 0, (size_t)(proposals->stride - dim) * sizeof *z);
}

void em_proposals_move(em_proposals *proposals, const double *from, double step, int64_t r)
{
    const int64_t stride = proposals->stride;
    const double *direction = proposals->direction + r * stride;
    double *theta = proposals->theta + r * stride;

    for (int64_t i = 0; i < stride; i++)
        theta[i] = from[i] + step * direction[i];
}

em_status em_proposals_evaluate(em_proposals *proposals, em_posterior *posterior, int64_t n,
                                const int64_t *chain)
{
    const em_query query = {.n_chain = n,
                            .stride = proposals->stride,
                            .chain = chain,
                            .theta = proposals->theta,
                            .log_density = proposals->log_density,
                            .gradient = proposals->gradient,
                            .wanted = EM_WANT_LOG_DENSITY};
    const em_status status = em_posterior_evaluate(posterior, &query);

    return status < 0 ? status : EM_OK;
}

void em_proposals_accept(const em_proposals *proposals, int64_t r, em_block *block, int64_t c)
{
    memcpy(block->theta + c * block->stride, proposals->theta + r * proposals->stride,
           (size_t)block->stride * sizeof *block->theta);
    block->log_density[c] = proposals->log_density[r];
}

void em_proposals_record(const em_step_context *context, em_block *block, int64_t c,
                         double acceptance, double evaluations)
{
    memset(block->gradient + c * block->stride, 0, (size_t)block->stride * sizeof(double));
    block->acceptance[c] = block->stat[EM_STAT_ACCEPTANCE_RATE][c] = acceptance;
    em_block_record_steps(block, c, context->step_size[c], evaluations);
}
