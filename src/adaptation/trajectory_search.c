/*
 * The end of a step-size, trajectory-length or final phase. The trajectory length that was tried is
 * kept or rejected, and the next phase is chosen. Where acceptance statistics or the mass estimates
 * show that curvature varies too much for trajectories of one length, NUTS is used instead.
 */
#include "adaptation/adaptation_internal.h"
#include "adaptation/trajectory/trajectory_criterion.h"
#include "base/memory.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

/* The lag-1 autocorrelation of this phase's draws, pooled over the chains that are not outlying.
 * Collective. */
static em_status measure_autocorrelation(em_adapt *adapt)
{
    em_warmup *warmup = &adapt->warmup;
    const int64_t size = em_lag_size(adapt->dim), n_chain = em_grid_n_chain(adapt->grid);
    double *pooled = NULL, n = 0;
    em_status status = em_agree(em_allocate(size, sizeof *pooled, &pooled));

    for (int64_t c = 0; c < n_chain; c++)
        n += !warmup->outlying[c];
    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        if (warmup->outlying[em_grid_first_chain(adapt->grid) + c])
            memset(warmup->lag + c * size, 0, (size_t)size * sizeof(double));
    if (!status)
        status = em_grid_sum_chains(adapt->grid, size, warmup->lag, pooled);
    if (!status)
        em_lag_estimate(adapt->dim, n,
                        (double)(warmup->begun + warmup->plan.trial - em_first_lag(warmup)), pooled,
                        warmup->tried_r, &warmup->tried_steps);
    memset(warmup->lag, 0, (size_t)(adapt->n_local_chain * size) * sizeof(double));
    em_release(&pooled);
    return status;
}

/* Whether curvature varies too much for trajectories of one step size. Collective. */
static em_status check_acceptance(em_adapt *adapt, bool *uneven)
{
    const int64_t n_chain = em_grid_n_chain(adapt->grid),
                  n = sizeof(em_acceptance_statistics) / sizeof(double);
    em_acceptance_statistics *all = NULL;
    em_status status = em_agree(em_allocate(n_chain, sizeof *all, &all));

    if (!status)
        status = em_grid_gather_chains(adapt->grid, n, (const double *)adapt->warmup.statistics,
                                       (double *)all);
    if (!status)
        *uneven = em_acceptance_is_uneven(n_chain, all, adapt->warmup.outlying);
    em_release(&all);
    return status;
}

/* *keeps: the trajectories just tried are more efficient than those kept so far. *tries_longer:
 * longer ones should be tried next. Rank 0 decides for all. Collective. */
static em_status compare_trajectories(em_adapt *adapt, bool *keeps, bool *tries_longer)
{
    em_warmup *warmup = &adapt->warmup;
    double *scratch = NULL;
    em_status status = em_agree(em_allocate(2 * adapt->dim, sizeof *scratch, &scratch));
    bool verdict[2] = {true, false};

    if (!status && warmup->phase == EM_PHASE_TRAJECTORY_LENGTH)
        verdict[0] = em_trajectory_is_better(adapt->dim, warmup->kept_r, warmup->kept_steps,
                                             warmup->tried_r, warmup->tried_steps, scratch);
    verdict[1] = verdict[0] && em_lag_is_long(adapt->dim, warmup->tried_r);
    em_broadcast(verdict, sizeof verdict);
    *keeps = verdict[0];
    *tries_longer = verdict[1];
    em_release(&scratch);
    return status;
}

/* Keeps the trajectory length and step size just tried, or restores those kept so far. `measured`:
 * this phase has an autocorrelation of its own; without one, that of the trajectories kept stays.
 * Local. */
static void keep_or_revert(em_adapt *adapt, bool keeps, bool measured)
{
    em_warmup *warmup = &adapt->warmup;
    em_pool *pool = adapt->pools;

    if (keeps) {
        warmup->kept = warmup->drawn;
        warmup->kept_averaging = pool->averaging;
        if (measured) {
            warmup->kept_steps = warmup->tried_steps;
            memcpy(warmup->kept_r, warmup->tried_r, (size_t)adapt->dim * sizeof(double));
        }
    } else {
        warmup->drawn = warmup->kept;
        pool->averaging = warmup->kept_averaging;
    }
    pool->step_size = em_final_step_size(adapt);
}

/* Changes to trajectories that end at a U-turn, as in NUTS. The step size is that of the initial
 * phase, which used them too. Local. */
static void switch_to_u_turn(em_adapt *adapt)
{
    em_warmup *warmup = &adapt->warmup;
    em_pool *pool = adapt->pools;

    warmup->drawn = warmup->kept = em_trajectory_of_time(INFINITY, 0);
    if (!adapt->adapts_step)
        return;
    pool->step_size = warmup->record[0].step_size;
    em_dual_averaging_start(&pool->averaging, pool->step_size, 1);
}

/* Enters the phase that follows the one that has ended. Local. */
static void enter_next_phase(em_adapt *adapt, bool searches_length, bool adapts_again, int64_t done)
{
    em_warmup *warmup = &adapt->warmup;
    em_trajectory longer;

    memset(warmup->statistics, 0, (size_t)adapt->n_local_chain * sizeof *warmup->statistics);
    if (searches_length &&
        em_warmup_longer_trajectory(&warmup->plan, &warmup->kept, done, &longer)) {
        em_enter_phase(warmup, EM_PHASE_TRAJECTORY_LENGTH, done);
        warmup->drawn = longer;
        if (adapt->adapts_step)
            em_dual_averaging_start(&adapt->pools->averaging, adapt->pools->step_size, 1);
    } else if (warmup->plan.given && done < warmup->plan.warmup) {
        em_enter_phase(warmup, EM_PHASE_FINAL, done);
    } else if (adapts_again && done < warmup->plan.warmup) {
        em_enter_phase(warmup, EM_PHASE_STEP_SIZE, done);
    } else {
        em_enter_phase(warmup, EM_PHASE_SAMPLING, done);
        warmup->ended = done;
    }
}

em_status em_end_phase(em_adapt *adapt, int64_t done)
{
    em_warmup *warmup = &adapt->warmup;
    bool keeps = true, longer = false, uneven = false;
    em_status status = em_phase_is_tried(warmup) ? check_acceptance(adapt, &uneven) : EM_OK;

    const bool measured = !uneven && em_phase_is_measured(warmup);

    if (!status && measured) {
        status = measure_autocorrelation(adapt);
        if (!status)
            status = compare_trajectories(adapt, &keeps, &longer);
    }
    if (!status)
        status = em_record_phase(adapt,
                                 uneven  ? EM_END_UNEVEN
                                 : keeps ? EM_END_PLANNED
                                         : EM_END_REFUSED,
                                 done);
    if (uneven)
        switch_to_u_turn(adapt);
    else
        keep_or_revert(adapt, keeps, measured);
    enter_next_phase(adapt, longer, uneven, done);
    return status;
}
