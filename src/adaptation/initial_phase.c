/* The end of a window of the stage `arrive`. */
#include "adaptation/adaptation_internal.h"
#include "base/memory.h"
#include "par/world.h"

#include <math.h>

/* The log densities of all chains since the later half of the window began. Collective. */
static em_status gather_stretches(em_adapt *adapt, int64_t done, em_log_density_window *all)
{
    const em_warmup *course = &adapt->course;
    const int64_t from = em_warmup_window_begin(done), n = sizeof *all / sizeof(double);
    em_log_density_window *local = NULL;
    em_status status = em_agree(em_allocate(adapt->n_local_chain, sizeof *local, &local));

    for (int64_t c = 0; !status && c < adapt->n_local_chain; c++) {
        const int64_t since = (int64_t)course->since[c], first = since > from ? since : from;
        local[c] = em_log_density_window_of(done - first,
                                            course->history + c * course->plan.arrive + first);
    }
    if (!status)
        status = em_grid_gather_chains(adapt->grid, n, (const double *)local, (double *)all);
    em_release(&local);
    return status;
}

/*
 * Whether curvature varies too much for trajectories of one step size and length, as the draws and
 * gradients of the last two windows have it. With 4 chains, in 12 seeds each: 3.6 and more in both
 * on the centred eight schools and gp_pois; at most 2.5 in the lesser of both on radon, 2.7 on the
 * non-centred eight schools, 2.9 on garch11; 2.6 on irt_2pl (144 dimensions, 4 seeds).
 */
static bool is_uneven(const em_adapt *adapt)
{
    static const double most = 3;
    const int64_t n = adapt->n_m_step;
    const em_m_step *m_step = adapt->pools->m_step;

    return adapt->course.plan.learned && n >= 2 && m_step[n - 1].unevenness > most &&
           m_step[n - 2].unevenness > most;
}

/* From here on the kernel is the one that draws. Collective. */
static em_status leave_arrival(em_adapt *adapt, bool arrived, int64_t done)
{
    em_warmup *course = &adapt->course;
    em_pool *pool = adapt->pools;
    em_status status = em_record_phase(adapt, arrived ? EM_END_REACHED : EM_END_PLANNED, done);

    em_enter_phase(course, EM_PHASE_STEP_SIZE, done);
    course->time_from = done;
    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        course->step_factor[c] = 1;
    if (is_uneven(adapt))
        course->drawn = course->kept = em_trajectory_of_time(INFINITY, 0);
    else if (adapt->adapts_step && course->drawn.kind == EM_TRAJECTORY_TIME)
        em_dual_averaging_start(&pool->averaging, pool->step_size, 1);
    return status;
}

/* Whether arrive ends with this window. */
static bool arrival_ends(em_adapt *adapt, const em_log_density_window *stretch, int64_t done,
                         bool *arrived)
{
    em_warmup *course = &adapt->course;
    const int64_t n_chain = em_grid_n_chain(adapt->grid);
    const bool dense = adapt->form.ops == &em_mass_dense;
    const double whole = 4 * (double)adapt->dim; /* what a whole matrix takes */
    /* Of many chains a few may not hold up the others. */
    const int64_t spared = course->many ? n_chain / 16 : 0;
    const double wanted = fmax(200, dense ? whole : fmin(whole, 800));
    double n_sample = 0;

    for (int64_t c = 0; c < n_chain; c++)
        n_sample += stretch[c].length;
    course->n_arrived = em_initial_phase_has_ended(n_chain, stretch, course->flagged, spared)
                            ? course->n_arrived + 1
                            : 0;
    *arrived = course->n_arrived >= 2 && n_sample >= wanted;
    return done == course->plan.arrive || (*arrived && !course->plan.given);
}

em_status em_end_window(em_adapt *adapt, em_block *block, int64_t done)
{
    const int64_t n_chain = em_grid_n_chain(adapt->grid);
    em_warmup *course = &adapt->course;
    em_log_density_window *stretch = NULL;
    double *scratch = NULL;
    bool ends = false, arrived = false;
    em_status status = em_allocate(n_chain, sizeof *stretch, &stretch);

    if (!status)
        status = em_allocate(n_chain, sizeof *scratch, &scratch);
    status = em_agree(status);
    if (!status)
        status = gather_stretches(adapt, done, stretch);
    if (!status) {
        em_find_outlying_chains(n_chain, stretch, adapt->dim, scratch, course->flagged);
        ends = arrival_ends(adapt, stretch, done, &arrived);
        if (em_learns(adapt))
            status = em_learn_from_half(adapt, done);
    }
    if (!status)
        status = em_reinitialise_chains(adapt, block, stretch, done);
    course->window = em_warmup_next_window(&course->plan, done);
    em_window_aim(&adapt->window, em_warmup_window_begin(course->window), course->window);
    em_drop_segments(adapt);
    if (!status && ends)
        status = leave_arrival(adapt, arrived, done);
    em_release(&stretch);
    em_release(&scratch);
    return status;
}
