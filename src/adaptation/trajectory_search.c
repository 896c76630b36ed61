/*
 * The step-size, trajectory-length and final phases. When one ends, the trajectory length that was
 * tried is kept or rejected, and the next phase is chosen. Where acceptance statistics or the mass
 * estimates show that curvature varies too much for trajectories of one length, NUTS is used
 * instead.
 */
#include "adaptation/adaptation_internal.h"
#include "base/memory.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- observing iterations */

/* The first iteration of this phase whose draws are used. */
static int64_t first_observed(const em_adapt *adapt)
{
    return adapt->begun + adapt->plan->trial / 5;
}

/* Whether this phase tests if steps are too long in some regions. */
static bool tests_acceptance(const em_adapt *adapt)
{
    return adapt->plan->learned && adapt->phase != EM_PHASE_FINAL;
}

/* Whether this phase tests if curvature varies too much for trajectories of one length. */
static bool tests_curvature(const em_adapt *adapt)
{
    return tests_acceptance(adapt) && adapt->search->drawn.kind == EM_TRAJECTORY_TIME;
}

/* Whether this phase measures autocorrelation. */
static bool measures_lag(const em_adapt *adapt)
{
    return tests_curvature(adapt) && adapt->plan->searches_length;
}

/* Forgets the sums for the autocorrelation of this phase. */
static void clear_lag(em_adapt *adapt)
{
    if (measures_lag(adapt))
        memset(adapt->search->lag, 0,
               (size_t)(adapt->n_local_chain * em_lag_size(adapt->dim)) * sizeof(double));
}

/* Begins the trial of a longer trajectory, from the step size found so far. */
void em_trial_enter(em_adapt *adapt, int64_t done)
{
    em_length_search *search = adapt->search;

    memset(search->statistics, 0, (size_t)adapt->n_local_chain * sizeof *search->statistics);
    if (adapt->phase != EM_PHASE_TRAJECTORY_LENGTH)
        return;
    em_warmup_longer_trajectory(adapt->plan, &search->kept, done, &search->drawn);
    if (adapt->adapts_step)
        em_dual_averaging_start(&adapt->pools->averaging, adapt->pools->step_size, 1);
}

em_status em_trial_observe(em_adapt *adapt, const em_block *block, int64_t iteration)
{
    const int64_t size = em_lag_size(adapt->dim), first = first_observed(adapt);
    em_length_search *search = adapt->search;

    if (iteration < first || !tests_acceptance(adapt))
        return EM_OK;
    const bool typical = adapt->pools->step_size <= 1.25 * em_final_step_size(adapt, adapt->pools);
    for (int64_t c = 0; c < block->n_chain; c++) {
        const bool diverging = block->stat[EM_STAT_DIVERGING][c] != 0;
        if (!block->failed[c] || diverging)
            em_acceptance_observe(block->acceptance[c], diverging, typical, &search->statistics[c]);
        if (!measures_lag(adapt))
            continue;
        for (int64_t i = 0; i < adapt->dim; i++)
            adapt->sample[i] = block->theta[c * block->stride + i] - adapt->pools->centre[i];
        em_lag_observe(adapt->dim, adapt->sample, block->n_step[c], iteration - first,
                       search->lag + c * size);
    }
    return EM_OK;
}

/* ---------------------------------------------------------------- the end of a phase */

em_status em_record_phase(em_adapt *adapt, em_phase_end why, int64_t done)
{
    const em_trajectory *drawn = &adapt->search->drawn;
    const bool timed = adapt->phase != EM_PHASE_INITIAL && drawn->kind == EM_TRAJECTORY_TIME;
    em_phase_record *out = &adapt->record[adapt->n_phase++];

    *out = (em_phase_record){.phase = adapt->phase,
                             .iteration = (double)done,
                             .end = why,
                             .time = timed ? drawn->time : NAN,
                             .step_size = em_final_step_size(adapt, adapt->pools)};
    return em_grid_sum_chains(adapt->grid, 1, adapt->gradients, &out->gradients);
}

/* The lag-1 autocorrelation of this phase's draws, pooled over the chains that are not outlying.
 * Collective. */
static em_status measure_autocorrelation(em_adapt *adapt)
{
    em_length_search *search = adapt->search;
    const int64_t size = em_lag_size(adapt->dim), n_chain = adapt->n_chain;
    double *pooled = NULL, n = 0;
    em_status status = em_agree(em_allocate(size, sizeof *pooled, &pooled));

    for (int64_t c = 0; c < n_chain; c++)
        n += !adapt->outlying[c];
    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        if (adapt->outlying[adapt->first_chain + c])
            memset(search->lag + c * size, 0, (size_t)size * sizeof(double));
    status = status ? status : em_grid_sum_chains(adapt->grid, size, search->lag, pooled);
    if (!status)
        em_lag_estimate(adapt->dim, n,
                        (double)(adapt->begun + adapt->plan->trial - first_observed(adapt)), pooled,
                        search->tried_r, &search->tried_steps);
    clear_lag(adapt);
    em_release(&pooled);
    return status;
}

/* Judges the acceptance statistics of all chains. Collective. */
static em_status check_acceptance(em_adapt *adapt, em_acceptance_verdict *verdict)
{
    const int64_t n_chain = adapt->n_chain, n = sizeof(em_acceptance_statistics) / sizeof(double);
    const double most_lost = adapt->phase == EM_PHASE_STEP_SIZE ? em_most_lost(adapt) : 1;
    EM_SCOPED em_acceptance_statistics *all = NULL;
    em_status status = em_agree(em_allocate(n_chain, sizeof *all, &all));

    if (!status)
        status = em_grid_gather_chains(adapt->grid, n, (const double *)adapt->search->statistics,
                                       (double *)all);
    if (!status)
        *verdict =
            em_judge_acceptance(n_chain, all, adapt->outlying, tests_curvature(adapt), most_lost);
    return status;
}

/* *keeps: the trajectories just tried are more efficient than those kept so far. *tries_longer:
 * longer ones should be tried next. Rank 0 decides for all. Collective. */
static em_status compare_trajectories(em_adapt *adapt, bool *keeps, bool *tries_longer)
{
    em_length_search *search = adapt->search;
    EM_SCOPED double *scratch = NULL;
    em_status status = em_agree(em_allocate(2 * adapt->dim, sizeof *scratch, &scratch));
    bool verdict[2] = {true, false};

    if (!status && adapt->phase == EM_PHASE_TRAJECTORY_LENGTH)
        verdict[0] = em_trajectory_is_better(adapt->dim, search->kept_r, search->kept_steps,
                                             search->tried_r, search->tried_steps, scratch);
    verdict[1] = verdict[0] && em_lag_is_long(adapt->dim, search->tried_r);
    em_broadcast(verdict, sizeof verdict);
    *keeps = verdict[0];
    *tries_longer = verdict[1];
    return status;
}

/* Keeps the trajectory length and step size just tried, or restores those kept so far. `measured`:
 * this phase has an autocorrelation of its own; without one, that of the trajectories kept stays.
 * Local. */
static void keep_or_revert(em_adapt *adapt, bool keeps, bool measured)
{
    em_length_search *search = adapt->search;
    em_pool *pool = adapt->pools;

    if (keeps) {
        search->kept = search->drawn;
        search->kept_averaging = pool->averaging;
        if (measured) {
            search->kept_steps = search->tried_steps;
            memcpy(search->kept_r, search->tried_r, (size_t)adapt->dim * sizeof(double));
        }
    } else {
        search->drawn = search->kept;
        pool->averaging = search->kept_averaging;
    }
    pool->step_size = em_final_step_size(adapt, pool);
}

void em_switch_to_nuts(em_adapt *adapt)
{
    adapt->search->drawn = adapt->search->kept = em_trajectory_of_time(INFINITY, 0);
    em_set_target_accept(adapt);
}

/* Restores the step size of the initial phase for NUTS, because the initial phase used NUTS too.
 * Local. */
static void restore_initial_step(em_adapt *adapt)
{
    em_pool *pool = adapt->pools;

    if (!adapt->adapts_step)
        return;
    pool->step_size = adapt->record[0].step_size;
    em_dual_averaging_start(&pool->averaging, pool->step_size, 1);
}

/* Raises the target acceptance rate, and starts the search for a step size again. Local. */
static void shorten_steps(em_adapt *adapt)
{
    em_pool *pool = adapt->pools;

    em_set_target_accept(adapt);
    em_dual_averaging_start(&pool->averaging, pool->step_size, 1);
    clear_lag(adapt);
}

/* Lets leapfrog take over from steps of several stages, with the target that the phases so far ask
 * for. Local. */
static void switch_to_leapfrog(em_adapt *adapt)
{
    adapt->search->drawn.multistage = adapt->search->kept.multistage = false;
    em_set_target_accept(adapt);
    restore_initial_step(adapt);
    clear_lag(adapt);
}

/* Whether this phase has tried steps of several stages, and they do not pay. Local. */
static bool needs_leapfrog(const em_adapt *adapt, em_acceptance_verdict verdict)
{
    const em_pool *pool = adapt->pools;

    return adapt->phase == EM_PHASE_STEP_SIZE && adapt->search->drawn.multistage &&
           (verdict != EM_ACCEPTANCE_EVEN || !em_multistage_pays(adapt->dim, pool->averaging.target,
                                                                 em_final_step_size(adapt, pool)));
}

/* The phase that follows the one that has ended. Local. */
static em_phase_id choose_next(const em_adapt *adapt, bool searches_length, bool adapts_again,
                               int64_t done)
{
    em_trajectory longer;

    if (searches_length && !em_trajectory_is_cut(&adapt->search->kept, adapt->pools->step_size) &&
        em_warmup_longer_trajectory(adapt->plan, &adapt->search->kept, done, &longer))
        return EM_PHASE_TRAJECTORY_LENGTH;
    if (adapts_again && done + adapt->plan->trial <= adapt->plan->warmup)
        return EM_PHASE_STEP_SIZE;
    return done < adapt->plan->warmup && adapt->plan->given ? EM_PHASE_FINAL : EM_PHASE_SAMPLING;
}

em_status em_trial_leave(em_adapt *adapt, int64_t done, em_phase_id *next)
{
    bool keeps = true, longer = false;
    em_acceptance_verdict verdict = EM_ACCEPTANCE_EVEN;
    em_status status = tests_acceptance(adapt) ? check_acceptance(adapt, &verdict) : EM_OK;
    const bool uneven = verdict == EM_ACCEPTANCE_UNEVEN,
               diverges = verdict == EM_ACCEPTANCE_DIVERGING;
    const bool loses = diverges || verdict == EM_ACCEPTANCE_LOST;
    const bool measured = verdict == EM_ACCEPTANCE_EVEN && measures_lag(adapt);

    if (!status && needs_leapfrog(adapt, verdict)) {
        status =
            em_record_phase(adapt, diverges ? EM_END_LEAPFROG_DIVERGING : EM_END_LEAPFROG, done);
        switch_to_leapfrog(adapt);
        *next = choose_next(adapt, false, true, done);
        return status;
    }
    if (!status && measured) {
        status = measure_autocorrelation(adapt);
        status = status ? status : compare_trajectories(adapt, &keeps, &longer);
    }
    if (!status)
        status = em_record_phase(adapt,
                                 uneven     ? EM_END_UNEVEN
                                 : diverges ? EM_END_DIVERGING
                                 : loses    ? EM_END_LOST
                                 : keeps    ? EM_END_PLANNED
                                            : EM_END_REFUSED,
                                 done);
    if (uneven) {
        em_switch_to_nuts(adapt);
        restore_initial_step(adapt);
    } else
        keep_or_revert(adapt, keeps, measured);
    if (loses)
        shorten_steps(adapt);
    *next = choose_next(adapt, longer, loses || (uneven && !adapt->plan->given), done);
    return status;
}
