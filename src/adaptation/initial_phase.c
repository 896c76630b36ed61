/*
 * The end of a window of the initial phase: finds outlying chains, re-estimates the mass, and
 * decides whether the phase ends.
 */
#include "adaptation/adaptation_internal.h"
#include "base/memory.h"
#include "par/world.h"

#include <math.h>

/* Summaries of the log densities of all chains over the later half. Collective. */
static em_status gather_windows(em_adapt *adapt, int64_t done, em_log_density_window *all)
{
    const em_warmup *warmup = &adapt->warmup;
    const int64_t from = em_warmup_window_begin(done), n = sizeof *all / sizeof(double);
    em_log_density_window *local = NULL;
    em_status status = em_agree(em_allocate(adapt->n_local_chain, sizeof *local, &local));

    for (int64_t c = 0; !status && c < adapt->n_local_chain; c++) {
        const int64_t since = (int64_t)warmup->since[c], first = since > from ? since : from;
        local[c] = em_log_density_window_of(done - first,
                                            warmup->history + c * warmup->plan.initial + first);
    }
    if (!status)
        status = em_grid_gather_chains(adapt->grid, n, (const double *)local, (double *)all);
    em_release(&local);
    return status;
}

/*
 * Whether curvature varies too much for trajectories of one step size and length: the unevenness of
 * the last two windows' draws and gradients exceeds 3. With 4 chains, in 12 seeds each: 3.6 and
 * more in both
 * on the centred eight schools and gp_pois; at most 2.5 in the lesser of both on radon, 2.7 on the
 * non-centred eight schools, 2.9 on garch11; 2.6 on irt_2pl (144 dimensions, 4 seeds).
 */
static bool is_uneven(const em_adapt *adapt)
{
    static const double most = 3;
    const int64_t n = adapt->n_m_step;
    const em_m_step *m_step = adapt->pools->m_step;

    return adapt->warmup.plan.learned && n >= 2 && m_step[n - 1].unevenness > most &&
           m_step[n - 2].unevenness > most;
}

/* Enters the step-size phase, from which on the kernel is that of sampling. Collective. */
static em_status leave_initial_phase(em_adapt *adapt, bool reached, int64_t done)
{
    em_warmup *warmup = &adapt->warmup;
    em_pool *pool = adapt->pools;
    em_status status = em_record_phase(adapt, reached ? EM_END_REACHED : EM_END_PLANNED, done);

    em_enter_phase(warmup, EM_PHASE_STEP_SIZE, done);
    warmup->time_from = done;
    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        warmup->step_factor[c] = 1;
    if (is_uneven(adapt))
        warmup->drawn = warmup->kept = em_trajectory_of_time(INFINITY, 0);
    else if (adapt->adapts_step && warmup->drawn.kind == EM_TRAJECTORY_TIME)
        em_dual_averaging_start(&pool->averaging, pool->step_size, 1);
    return status;
}

/* Whether the initial phase ends with this window; *reached: because its criterion was met. */
static bool initial_phase_ends(em_adapt *adapt, const em_log_density_window *window, int64_t done,
                               bool *reached)
{
    em_warmup *warmup = &adapt->warmup;
    const int64_t n_chain = em_grid_n_chain(adapt->grid);
    const bool dense = adapt->form.ops == &em_mass_dense;
    const double dense_samples = 4 * (double)adapt->dim; /* samples for a dense matrix */
    /* Of many chains a few may be outlying without prolonging the phase. */
    const int64_t spared = warmup->many ? n_chain / 16 : 0;
    const double wanted = fmax(200, dense ? dense_samples : fmin(dense_samples, 800));
    double n_sample = 0;

    for (int64_t c = 0; c < n_chain; c++)
        n_sample += window[c].length;
    warmup->n_stationary = em_initial_phase_has_ended(n_chain, window, warmup->outlying, spared)
                               ? warmup->n_stationary + 1
                               : 0;
    *reached = warmup->n_stationary >= 2 && n_sample >= wanted;
    return done == warmup->plan.initial || (*reached && !warmup->plan.given);
}

em_status em_end_window(em_adapt *adapt, em_block *block, int64_t done)
{
    const int64_t n_chain = em_grid_n_chain(adapt->grid);
    em_warmup *warmup = &adapt->warmup;
    em_log_density_window *window = NULL;
    double *scratch = NULL;
    bool ends = false, reached = false;
    em_status status = em_allocate(n_chain, sizeof *window, &window);

    if (!status)
        status = em_allocate(n_chain, sizeof *scratch, &scratch);
    status = em_agree(status);
    if (!status)
        status = gather_windows(adapt, done, window);
    if (!status) {
        em_find_outlying_chains(n_chain, window, adapt->dim, scratch, warmup->outlying);
        ends = initial_phase_ends(adapt, window, done, &reached);
        if (em_learns(adapt))
            status = em_learn_from_window(adapt, done);
    }
    if (!status)
        status = em_reinitialise_chains(adapt, block, window, done);
    warmup->window = em_warmup_next_window(&warmup->plan, done);
    em_window_aim(&adapt->window, em_warmup_window_begin(warmup->window), warmup->window);
    em_drop_segments(adapt);
    if (!status && ends)
        status = leave_initial_phase(adapt, reached, done);
    em_release(&window);
    em_release(&scratch);
    return status;
}
