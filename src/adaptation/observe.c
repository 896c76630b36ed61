/* What each iteration of warmup adds to the statistics of the current phase. */
#include "adaptation/adaptation_internal.h"
#include "adaptation/trajectory/trajectory_criterion.h"

static void observe_initial_phase(em_adapt *adapt, const em_block *block, int64_t iteration)
{
    em_warmup *warmup = &adapt->warmup;

    if (iteration > 0 && em_warmup_splits_window(&warmup->plan, iteration))
        warmup->segment_from[++warmup->segment] = iteration;
    for (int64_t c = 0; c < block->n_chain; c++) {
        warmup->history[c * warmup->plan.initial + iteration] = block->log_density[c];
        if (warmup->many)
            em_tree_depth_observe(block->stat[EM_STAT_TREE_DEPTH][c],
                                  block->stat[EM_STAT_REACHED_MAX_TREEDEPTH][c] != 0,
                                  warmup->depth_counts + c * EM_DEPTHS);
        if (em_learns(adapt) && !adapt->keeps_draws)
            em_collect(adapt, block, c, false);
    }
    em_window_take(&adapt->window, block, iteration);
}

static void observe_acceptance(em_adapt *adapt, const em_block *block)
{
    for (int64_t c = 0; c < block->n_chain; c++)
        em_acceptance_observe(block->acceptance[c], block->stat[EM_STAT_DIVERGING][c] != 0,
                              &adapt->warmup.statistics[c]);
}

static void observe_lag(em_adapt *adapt, const em_block *block, int64_t iteration)
{
    const em_warmup *warmup = &adapt->warmup;
    const int64_t size = em_lag_size(adapt->dim);

    for (int64_t c = 0; c < block->n_chain; c++) {
        for (int64_t i = 0; i < adapt->dim; i++)
            adapt->sample[i] = block->theta[c * block->stride + i] - adapt->pools->centre[i];
        em_lag_observe(adapt->dim, adapt->sample, block->n_step[c],
                       iteration - em_first_lag(warmup), warmup->lag + c * size);
    }
}

void em_warmup_observe(em_adapt *adapt, const em_block *block, int64_t iteration)
{
    const em_warmup *warmup = &adapt->warmup;

    if (warmup->phase == EM_PHASE_INITIAL)
        observe_initial_phase(adapt, block, iteration);
    else if (iteration >= em_first_lag(warmup)) {
        if (em_phase_is_tried(warmup))
            observe_acceptance(adapt, block);
        if (em_phase_is_measured(warmup))
            observe_lag(adapt, block, iteration);
    }
}
