/* The current phase of warmup: what is measured in it, and the record of one that ends. */
#include "adaptation/adaptation_internal.h"

#include <math.h>

/* The first iteration of the phase whose draws enter the autocorrelation. */
int64_t em_first_lag(const em_warmup *warmup)
{
    return warmup->begun + warmup->plan.trial / 5;
}

bool em_phase_is_measured(const em_warmup *warmup)
{
    return warmup->plan.searches_length && warmup->drawn.kind == EM_TRAJECTORY_TIME &&
           (warmup->phase == EM_PHASE_STEP_SIZE || warmup->phase == EM_PHASE_TRAJECTORY_LENGTH);
}

/* Whether this phase tests if curvature varies too much for trajectories of one length. */
bool em_phase_is_tried(const em_warmup *warmup)
{
    return warmup->plan.learned && warmup->drawn.kind == EM_TRAJECTORY_TIME &&
           (warmup->phase == EM_PHASE_STEP_SIZE || warmup->phase == EM_PHASE_TRAJECTORY_LENGTH);
}

/* The step size that a phase ends with: the averaged one. Local. */
double em_final_step_size(const em_adapt *adapt)
{
    const em_pool *pool = adapt->pools;

    return adapt->adapts_step ? em_dual_averaging_final(&pool->averaging) : pool->step_size;
}

void em_enter_phase(em_warmup *warmup, em_phase_id phase, int64_t done)
{
    warmup->phase = phase;
    warmup->begun = done;
}

/* Records what was learned in the phase that ends. Collective. */
em_status em_record_phase(em_adapt *adapt, em_phase_end why, int64_t done)
{
    em_warmup *warmup = &adapt->warmup;
    const bool timed =
        warmup->phase != EM_PHASE_INITIAL && warmup->drawn.kind == EM_TRAJECTORY_TIME;
    em_phase_record *out = &warmup->record[warmup->n_phase++];

    *out = (em_phase_record){.phase = warmup->phase,
                             .iteration = (double)done,
                             .end = why,
                             .time = timed ? warmup->drawn.time : NAN,
                             .step_size = em_final_step_size(adapt)};
    return em_grid_sum_chains(adapt->grid, 1, warmup->gradients, &out->gradients);
}
