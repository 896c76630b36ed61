/*
 * The initial phase, in which chains move from their starts to the typical set: what each iteration
 * adds, and the end of a window, which finds outlying chains, re-estimates the mass, and decides
 * whether the phase ends.
 */
#include "adaptation/adaptation_internal.h"
#include "adaptation/prior_proofs/scale_derivative.h"
#include "base/memory.h"
#include "math/order.h"
#include "par/world.h"

#include <math.h>

em_status em_initial_observe(em_adapt *adapt, const em_block *block, int64_t iteration)
{
    em_initial_phase *initial = adapt->initial;

    if (iteration > 0 && em_warmup_splits_window(adapt->plan, iteration))
        initial->segment_from[++initial->segment] = iteration;
    for (int64_t c = 0; c < block->n_chain; c++) {
        initial->history[c * adapt->plan->initial + iteration] = block->log_density[c];
        if (em_learns(adapt) && !adapt->keeps_draws)
            em_collect(adapt, block, c, false, em_accumulators(adapt, c, initial->segment));
        if (em_learns(adapt))
            em_outlying_observe(adapt, block, c);
    }
    em_window_take(&adapt->window, block, iteration);
    return EM_OK;
}

/* ---------------------------------------------------------------- the end of a window */

/* Whether the criterion of the phase is met: log densities are stationary at two windows in a row,
 * and there are enough samples. */
static bool has_reached_target(em_adapt *adapt, const em_log_density_window *window)
{
    em_initial_phase *initial = adapt->initial;
    const bool dense = adapt->form.ops == &em_mass_dense;
    /* Of many chains a few may be outlying without prolonging the phase. */
    const int64_t spared = adapt->n_chain >= EM_MANY_CHAINS ? adapt->n_chain / 16 : 0;
    /* Draws of fewer than 400 samples leave members out of a map's groups, whose necks chains then
     * do not leave: seeds_centered of posteriordb did not converge in 4 of 8 seeds. */
    const bool is_searched = em_is_noncentred(adapt) && adapt->dim <= EM_MOST_SEARCHED;
    const double least = is_searched ? 400 : 200;
    const double wanted = dense ? fmax(least, 4 * (double)adapt->dim) : least;
    double n_sample = 0;

    for (int64_t c = 0; c < adapt->n_chain; c++)
        n_sample += window[c].length;
    initial->n_stationary =
        em_initial_phase_has_ended(adapt->n_chain, window, adapt->outlying, spared)
            ? initial->n_stationary + 1
            : 0;
    return initial->n_stationary >= 2 && n_sample >= wanted;
}

em_status em_initial_update(em_adapt *adapt, em_posterior *posterior, em_block *block, int64_t done,
                            bool *renews)
{
    em_initial_phase *initial = adapt->initial;
    EM_SCOPED em_log_density_window *window = NULL;
    EM_SCOPED double *scratch = NULL;
    bool is_other_map = false;

    (void)renews; /* these kernels draw momenta in each iteration */
    if (done != initial->window)
        return EM_OK;
    em_status status = em_agree(
        em_allocate_all(EM_ARRAY(window, adapt->n_chain), EM_ARRAY(scratch, adapt->n_chain)));
    if (!status && adapt->noncentred)
        status = em_learn_noncentring(adapt, posterior, &is_other_map);
    if (!status && em_is_noncentred(adapt) && em_learns(adapt))
        status = em_keep_variances(adapt);
    status = status ? status : em_gather_log_densities(adapt, done, window);
    if (!status) {
        em_find_outlying_chains(adapt->n_chain, window, adapt->dim, scratch, adapt->outlying);
        initial->reached = has_reached_target(adapt, window) && !is_other_map;
        if (is_other_map)
            initial->n_stationary = 0;
    }
    if (!status && em_learns(adapt))
        status = em_learn_from_window(adapt, done);
    status = status ? status : em_reinitialise_chains(adapt, block, window, done);
    if (!status && em_learns(adapt))
        status = em_learn_outlying_masses(adapt);
    if (initial->reached && !adapt->plan->given)
        initial->end = done;
    initial->window = em_warmup_next_window(adapt->plan, done);
    em_window_aim(&adapt->window, em_warmup_window_begin(initial->window), initial->window);
    em_drop_segments(adapt);
    return status;
}

/* ---------------------------------------------------------------- the end of the phase */

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
    const em_m_step *end = adapt->pools->m_step + n;

    return adapt->plan->learned && n >= 2 && end[-1].unevenness > most && end[-2].unevenness > most;
}

/* Ends the initial phase: from here on the kernel is the one that samples. */
em_status em_initial_leave(em_adapt *adapt, int64_t done, em_phase_id *next)
{
    em_length_search *search = adapt->search;
    em_pool *pool = adapt->pools;
    em_status status =
        em_record_phase(adapt, adapt->initial->reached ? EM_END_REACHED : EM_END_PLANNED, done);

    (void)next;
    search->from = done;
    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        adapt->step_factor[c] = 1;
    em_drop_outlying_masses(adapt);
    if (is_uneven(adapt))
        em_switch_to_nuts(adapt);
    else if (adapt->adapts_step && search->drawn.kind == EM_TRAJECTORY_TIME)
        em_dual_averaging_start(&pool->averaging, pool->step_size, 1);
    return status;
}
