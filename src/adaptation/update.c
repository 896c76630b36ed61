/*
 * The adaptation updates of a warmup in phases. Windows and phases end at them. Every decision is
 * made from exact sums over the chains, or from rows gathered from all chains: it is the same on
 * any number of ranks.
 */
#include "adaptation/adaptation_internal.h"

#include <string.h>

int64_t em_warmup_next_update(const em_warmup *warmup)
{
    switch (warmup->phase) {
    case EM_PHASE_INITIAL:
        return warmup->window;
    case EM_PHASE_STEP_SIZE:
    case EM_PHASE_TRAJECTORY_LENGTH:
        return warmup->begun + warmup->plan.trial;
    default:
        return warmup->plan.warmup;
    }
}

em_status em_limit_depth(em_adapt *adapt, double step_size)
{
    em_warmup *warmup = &adapt->warmup;
    double count[EM_DEPTHS];
    em_status status;

    if (!warmup->many || warmup->phase != EM_PHASE_INITIAL)
        return EM_OK;
    status = em_grid_sum_chains(adapt->grid, EM_DEPTHS, warmup->depth_counts, count);
    memset(warmup->depth_counts, 0, (size_t)(adapt->n_local_chain * EM_DEPTHS) * sizeof *count);
    if (!status)
        warmup->depth_cap = em_tree_depth_limit(count, step_size / adapt->pools->step_size);
    return status;
}

em_status em_warmup_update(em_adapt *adapt, em_block *block, int64_t done)
{
    const em_warmup *warmup = &adapt->warmup;
    em_status status = EM_OK;

    if (warmup->phase == EM_PHASE_INITIAL && done == warmup->window)
        status = em_end_window(adapt, block, done);
    /* In a short warmup the step-size phase may have no iterations: it ends at once. */
    if (!status && warmup->phase != EM_PHASE_INITIAL && warmup->phase != EM_PHASE_SAMPLING &&
        done == em_warmup_next_update(warmup))
        status = em_end_phase(adapt, done);
    return status;
}
