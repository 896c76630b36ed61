/* What is observed in each stage of a course. */
#include "adaptation/adaptation_internal.h"
#include "adaptation/trajectory/trajectory_criterion.h"

static void observe_arrival(em_adapt *adapt, const em_block *block, int64_t iteration)
{
    em_warmup *course = &adapt->course;

    if (iteration > 0 && em_warmup_splits_window(&course->plan, iteration))
        course->segment_from[++course->segment] = iteration;
    for (int64_t c = 0; c < block->n_chain; c++) {
        course->history[c * course->plan.arrive + iteration] = block->log_density[c];
        if (course->many)
            em_tree_depth_observe(block->stat[EM_STAT_TREE_DEPTH][c],
                                  block->stat[EM_STAT_REACHED_MAX_TREEDEPTH][c] != 0,
                                  course->depths + c * EM_DEPTHS);
        if (em_learns(adapt) && !adapt->keeps_draws)
            em_collect(adapt, block, c, false);
    }
    em_window_take(&adapt->window, block, iteration);
}

static void observe_moves(em_adapt *adapt, const em_block *block)
{
    for (int64_t c = 0; c < block->n_chain; c++)
        em_acceptance_observe(block->acceptance[c], block->stat[EM_STAT_DIVERGING][c] != 0,
                              &adapt->course.moves[c]);
}

static void observe_lag(em_adapt *adapt, const em_block *block, int64_t iteration)
{
    const em_warmup *course = &adapt->course;
    const int64_t size = em_lag_size(adapt->dim);

    for (int64_t c = 0; c < block->n_chain; c++) {
        for (int64_t i = 0; i < adapt->dim; i++)
            adapt->sample[i] = block->theta[c * block->stride + i] - adapt->pools->centre[i];
        em_lag_observe(adapt->dim, adapt->sample, block->n_step[c],
                       iteration - em_first_lag(course), course->lag + c * size);
    }
}

void em_warmup_observe(em_adapt *adapt, const em_block *block, int64_t iteration)
{
    const em_warmup *course = &adapt->course;

    if (course->stage == EM_PHASE_INITIAL)
        observe_arrival(adapt, block, iteration);
    else if (iteration >= em_first_lag(course)) {
        if (em_phase_is_tried(course))
            observe_moves(adapt, block);
        if (em_phase_is_measured(course))
            observe_lag(adapt, block, iteration);
    }
}
