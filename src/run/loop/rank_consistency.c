/* Checks that data are the same on all ranks, and that a chain is the same on all ranks of its
 * group. */
#include "run/loop/rank_consistency.h"
#include "base/fault.h"
#include "base/memory.h"
#include "par/world.h"
#include "run/loop/engine.h"

#include <math.h>
#include <xxhash.h>

em_status em_check_ranks_have_one_data(const em_model *model)
{
    struct {
        int64_t dim, n_row;
        uint64_t hash;
    } mine = {model->dim, model->rows.total, model->data_hash}, first = mine;
    em_status status = EM_OK;
    char ranks[128];

    em_broadcast(&first, sizeof first);
    const bool differs =
        mine.dim != first.dim || mine.n_row != first.n_row || mine.hash != first.hash;
    em_world_list(differs, sizeof ranks, ranks);
    if (differs)
        status = em_fail(
            EM_EDATA,
            "read data that differ from those of rank 0 (%s): found %lld observations of %lld "
            "parameters and hash %016llx, expected %lld of %lld and %016llx; is a "
            "copy out of date?",
            ranks, (long long)mine.n_row, (long long)mine.dim, (unsigned long long)mine.hash,
            (long long)first.n_row, (long long)first.dim, (unsigned long long)first.hash);
    return em_agree(status);
}

/* The first chain whose position differs from that on the first rank of the group; -1: none. */
static em_status find_stray(const em_engine *engine, int64_t *stray)
{
    const em_block *block = engine->block;
    EM_SCOPED uint64_t *hash = NULL;
    em_status status = em_agree(em_allocate(2 * block->n_chain, sizeof *hash, &hash));

    if (status)
        return status;
    uint64_t *first = hash + block->n_chain;

    for (int64_t c = 0; c < block->n_chain; c++)
        hash[c] = first[c] =
            XXH64(block->theta + c * block->stride, (size_t)block->dim * sizeof *block->theta, 0);
    em_grid_copy_first_shard(engine->grid, block->n_chain, first);
    for (int64_t c = 0; *stray < 0 && c < block->n_chain; c++)
        *stray = hash[c] == first[c] ? -1 : c;
    return EM_OK;
}

em_status em_check_ranks_agree(const em_engine *engine)
{
    int64_t stray = -1;
    char ranks[128];

    if (em_grid_n_shard(engine->grid) == 1)
        return EM_OK;
    if (em_fault("position"))
        engine->block->theta[0] = nextafter(engine->block->theta[0], INFINITY);
    em_status status = find_stray(engine, &stray);
    if (status)
        return status;
    em_world_list(stray >= 0, sizeof ranks, ranks);
    if (stray >= 0)
        status = em_fail(EM_ENUMERIC,
                         "chain %lld has another position here than on rank %lld of its group, "
                         "after %lld iterations (%s): expected the same bits on every shard; do "
                         "these ranks have the same processors and libraries?",
                         (long long)engine->block->chain[stray],
                         (long long)(em_world_rank() - em_grid_shard(engine->grid)),
                         (long long)engine->done, ranks);
    return em_agree(status);
}
