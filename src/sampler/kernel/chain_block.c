#include "base/memory.h"
#include "sampler/kernel/sampler.h"

#include <math.h>

em_status em_block_create(int64_t first_chain, int64_t n_chain, int64_t dim, int64_t n_extra,
                          em_block **out)
{
    const int64_t panel = n_chain * em_stride(dim);
    em_status status = em_allocate(1, sizeof **out, out);
    em_block *block = *out;

    if (status)
        return status;
    *block =
        (em_block){.n_chain = n_chain, .dim = dim, .stride = em_stride(dim), .n_extra = n_extra};
    status =
        em_own_all(&block->memory, EM_ARRAY(block->chain, n_chain), EM_ARRAY(block->theta, panel),
                   EM_ARRAY(block->momentum, panel), EM_ARRAY(block->gradient, panel),
                   EM_ARRAY(block->log_density, n_chain), EM_ARRAY(block->acceptance, n_chain),
                   EM_ARRAY(block->n_step, n_chain), EM_ARRAY(block->failed, n_chain),
                   EM_ARRAY(block->extra, n_chain * n_extra));
    for (int i = 0; !status && i < EM_STAT_COUNT; i++)
        status = em_own_all(&block->memory, EM_ARRAY(block->stat[i], n_chain));
    for (int64_t c = 0; !status && c < n_chain; c++)
        block->chain[c] = first_chain + c;
    if (status)
        em_block_destroy(out);
    return status;
}

void em_block_destroy(em_block **block)
{
    em_release_owner(block);
}

em_query em_block_query_of(const em_block *block, int64_t c)
{
    return (em_query){.n_chain = 1,
                      .stride = block->stride,
                      .chain = block->chain + c,
                      .theta = block->theta + c * block->stride,
                      .log_density = block->log_density + c,
                      .gradient = block->gradient + c * block->stride};
}

em_query em_block_query(const em_block *block)
{
    em_query query = em_block_query_of(block, 0);

    query.n_chain = block->n_chain;
    return query;
}

em_status em_block_evaluate(em_posterior *posterior, em_block *block)
{
    enum { MOST_TRIES = 100 };
    const em_query query = em_block_query(block);
    const bool may_fail = em_posterior_may_fail(posterior);
    em_status status = em_posterior_evaluate(posterior, &query);

    for (int64_t c = 0; may_fail && c < block->n_chain; c++)
        for (int t = 0; status >= 0 && isnan(block->log_density[c]) && t < MOST_TRIES; t++) {
            const em_query again = em_block_query_of(block, c);
            status = em_posterior_evaluate(posterior, &again);
        }
    return status;
}
