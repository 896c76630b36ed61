/* The end of a stage that draws: whether its trajectories are kept, and what is tried next. */
#include "adaptation/adaptation_internal.h"
#include "adaptation/trajectory/trajectory_criterion.h"
#include "base/memory.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

/* The autocorrelation of the stage, pooled. Collective. */
static em_status measure(em_adapt *adapt)
{
    em_warmup *course = &adapt->course;
    const int64_t size = em_lag_size(adapt->dim), n_chain = em_grid_n_chain(adapt->grid);
    double *pooled = NULL, n = 0;
    em_status status = em_agree(em_allocate(size, sizeof *pooled, &pooled));

    for (int64_t c = 0; c < n_chain; c++)
        n += !course->flagged[c];
    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        if (course->flagged[em_grid_first_chain(adapt->grid) + c])
            memset(course->lag + c * size, 0, (size_t)size * sizeof(double));
    if (!status)
        status = em_grid_sum_chains(adapt->grid, size, course->lag, pooled);
    if (!status)
        em_lag_estimate(adapt->dim, n,
                        (double)(course->begun + course->plan.tune - em_first_lag(course)), pooled,
                        course->tried_r, &course->tried_steps);
    memset(course->lag, 0, (size_t)(adapt->n_local_chain * size) * sizeof(double));
    em_release(&pooled);
    return status;
}

/* Whether curvature varies too much for trajectories of one step size. Collective. */
static em_status look_at_moves(em_adapt *adapt, bool *uneven)
{
    const int64_t n_chain = em_grid_n_chain(adapt->grid),
                  n = sizeof(em_acceptance_statistics) / sizeof(double);
    em_acceptance_statistics *all = NULL;
    em_status status = em_agree(em_allocate(n_chain, sizeof *all, &all));

    if (!status)
        status = em_grid_gather_chains(adapt->grid, n, (const double *)adapt->course.moves,
                                       (double *)all);
    if (!status)
        *uneven = em_acceptance_is_uneven(n_chain, all, adapt->course.flagged);
    em_release(&all);
    return status;
}

/* Whether what was tried is better than what was kept, and whether longer is worth a try: as rank 0
 * computes it. Collective. */
static em_status judge(em_adapt *adapt, bool *keeps, bool *goes_on)
{
    em_warmup *course = &adapt->course;
    double *scratch = NULL;
    em_status status = em_agree(em_allocate(2 * adapt->dim, sizeof *scratch, &scratch));
    bool verdict[2] = {true, false};

    if (!status && course->stage == EM_PHASE_TRAJECTORY_LENGTH)
        verdict[0] = em_trajectory_is_better(adapt->dim, course->kept_r, course->kept_steps,
                                             course->tried_r, course->tried_steps, scratch);
    verdict[1] = verdict[0] && em_lag_is_long(adapt->dim, course->tried_r);
    em_broadcast(verdict, sizeof verdict);
    *keeps = verdict[0];
    *goes_on = verdict[1];
    em_release(&scratch);
    return status;
}

/* Keeps what was tried, or goes back to what was kept. Local. */
static void settle_on(em_adapt *adapt, bool keeps)
{
    em_warmup *course = &adapt->course;
    em_pool *pool = adapt->pools;

    if (keeps) {
        course->kept = course->drawn;
        course->kept_averaging = pool->averaging;
        course->kept_steps = course->tried_steps;
        memcpy(course->kept_r, course->tried_r, (size_t)adapt->dim * sizeof(double));
    } else {
        course->drawn = course->kept;
        pool->averaging = course->kept_averaging;
    }
    pool->step_size = em_final_step_size(adapt);
}

/* Trajectories that end where they turn back, from the step size that chains arrived with. Local.
 */
static void go_on_by_u_turn(em_adapt *adapt)
{
    em_warmup *course = &adapt->course;
    em_pool *pool = adapt->pools;

    course->drawn = course->kept = em_trajectory_of_time(INFINITY, 0);
    if (!adapt->adapts_step)
        return;
    pool->step_size = course->record[0].step_size;
    em_dual_averaging_start(&pool->averaging, pool->step_size, 1);
}

/* What follows the end of a stage whose setting is kept or given up. Local. */
static void go_on(em_adapt *adapt, bool climbs, bool tunes, int64_t done)
{
    em_warmup *course = &adapt->course;
    em_trajectory longer;

    memset(course->moves, 0, (size_t)adapt->n_local_chain * sizeof *course->moves);
    if (climbs && em_warmup_longer_trajectory(&course->plan, &course->kept, done, &longer)) {
        em_enter_phase(course, EM_PHASE_TRAJECTORY_LENGTH, done);
        course->drawn = longer;
        if (adapt->adapts_step)
            em_dual_averaging_start(&adapt->pools->averaging, adapt->pools->step_size, 1);
    } else if (course->plan.given && done < course->plan.warmup) {
        em_enter_phase(course, EM_PHASE_FINAL, done);
    } else if (tunes && done < course->plan.warmup) {
        em_enter_phase(course, EM_PHASE_STEP_SIZE, done);
    } else {
        em_enter_phase(course, EM_PHASE_SAMPLING, done);
        course->ended = done;
    }
}

em_status em_end_phase(em_adapt *adapt, int64_t done)
{
    em_warmup *course = &adapt->course;
    bool keeps = true, longer = false, uneven = false;
    em_status status = em_phase_is_tried(course) ? look_at_moves(adapt, &uneven) : EM_OK;

    if (!status && !uneven && em_phase_is_measured(course)) {
        status = measure(adapt);
        if (!status)
            status = judge(adapt, &keeps, &longer);
    }
    if (!status)
        status = em_record_phase(adapt,
                                 uneven  ? EM_END_UNEVEN
                                 : keeps ? EM_END_PLANNED
                                         : EM_END_REFUSED,
                                 done);
    if (uneven)
        go_on_by_u_turn(adapt);
    else
        settle_on(adapt, keeps);
    go_on(adapt, longer, uneven, done);
    return status;
}
