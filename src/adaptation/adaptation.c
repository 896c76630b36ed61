/* The adaptation engine: its start, what it observes in each iteration, and its adaptation updates
 * where warmup follows a fixed schedule. The updates of a warmup in phases are in update.c. */
#include "adaptation/adaptation.h"
#include "adaptation/adaptation_internal.h"
#include "adaptation/mass_window/subsampling_interval.h"
#include "par/world.h"

#include <string.h>

/* After a new mass: draws momenta and thermostats anew, which depend on it, and searches a step
 * size. The first step size is not searched where an earlier run has found it. Collective. */
static em_status refresh_after_mass(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                                    em_block *block, int64_t done)
{
    const em_step_context context = em_adapt_context(adapt, posterior, done);
    em_status status = EM_OK;

    if (sampler->ops->refresh)
        status = em_agree(sampler->ops->refresh(sampler, &context, block));
    if (!status && !(adapt->has_step && done == 0))
        status = em_search_step_size(adapt, sampler, posterior, block, done);
    return status;
}

/* The first centre is the mean of the chains' positions. */
em_status em_adapt_start(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                         em_block *block, const double *inverse_curvature)
{
    em_status status = EM_OK;

    if (adapt->shares) {
        status = em_grid_begin_sum(adapt->grid, adapt->dim);
        for (int64_t c = 0; !status && c < block->n_chain; c++)
            em_grid_add_to_sum(adapt->grid, adapt->dim, block->theta + c * block->stride);
        if (!status)
            em_grid_end_sum(adapt->grid, adapt->dim, adapt->pools[0].centre);
        for (int64_t i = 0; i < adapt->dim; i++)
            adapt->pools[0].centre[i] /= (double)em_grid_n_chain(adapt->grid);
    } else {
        for (int64_t c = 0; c < block->n_chain; c++)
            memcpy(adapt->pools[c].centre, block->theta + c * block->stride,
                   (size_t)adapt->dim * sizeof(double));
    }
    adapt->e_step_from = adapt->schedule.first;
    if (!status && adapt->warmup.runs && em_learns(adapt) && !adapt->has_step)
        status = em_warmup_begin(adapt, block, inverse_curvature);
    if (!status)
        status = refresh_after_mass(adapt, sampler, posterior, block, 0);
    return status;
}

em_status em_adapt_observe(em_adapt *adapt, em_posterior *posterior, const em_block *block,
                           int64_t iteration)
{
    em_status status = EM_OK;

    for (int64_t c = 0; c < block->n_chain; c++) {
        adapt->acceptance[c] += block->acceptance[c];
        em_adapt_count_gradients(adapt, c, (int64_t)block->n_step[c]);
    }
    adapt->n_since++;
    if (adapt->warmup.runs) {
        em_warmup_observe(adapt, block, iteration);
        return EM_OK;
    }
    if (iteration < adapt->schedule.first || iteration >= adapt->schedule.last)
        return EM_OK;
    if (adapt->noise)
        status = em_gradient_noise_sample(adapt->noise, posterior, adapt->seed, iteration, block);
    if (status || !em_learns(adapt))
        return status;
    const bool subsample =
        adapt->options->s_count_rule == EM_S_COUNT_INTERVAL &&
        em_subsampling_interval_takes(adapt->options, adapt->seed, adapt->n_m_step,
                                      iteration - adapt->e_step_from + 1);
    for (int64_t c = 0; c < block->n_chain; c++)
        em_collect(adapt, block, c, subsample);
    em_window_take(&adapt->window, block, iteration);
    return EM_OK;
}

/* ---------------------------------------------------------------- times of adaptation updates */

/* The end of the window that iteration `done` is in; warmup where there is none. */
static int64_t next_window_end(const em_adapt *adapt, int64_t done)
{
    const em_schedule *schedule = &adapt->schedule;

    for (int64_t i = 0; i < schedule->n_window; i++)
        if (schedule->window_end[i] > done)
            return schedule->window_end[i];
    return schedule->warmup;
}

static int64_t next_m_step(const em_adapt *adapt, int64_t done)
{
    const em_schedule *schedule = &adapt->schedule;
    const int64_t next = adapt->e_step_from + em_e_step_length(adapt);

    if (!em_learns(adapt))
        return schedule->warmup;
    if (adapt->estimator->windowed)
        return next_window_end(adapt, done);
    return next > done && next <= schedule->last ? next : schedule->warmup;
}

static bool m_step_is_due(const em_adapt *adapt, int64_t done)
{
    return em_learns(adapt) && done > 0 && adapt->n_m_step < adapt->most_m_steps &&
           done <= adapt->schedule.last && next_m_step(adapt, done - 1) == done;
}

int64_t em_adapt_next_update(const em_adapt *adapt, int64_t done)
{
    const int64_t every = adapt->schedule.adapt_every, warmup = adapt->schedule.warmup;
    const int64_t often =
        adapt->warmup.runs && done < em_warmup_updates_often(&adapt->warmup.plan) ? 1 : every;
    const int64_t update = adapt->adapts_step ? (done / often + 1) * often : warmup;
    const int64_t m =
        adapt->warmup.runs ? em_warmup_next_update(&adapt->warmup) : next_m_step(adapt, done);
    const int64_t noise = adapt->noise ? next_window_end(adapt, done) : warmup;
    int64_t next = update < m ? update : m;

    next = next < noise ? next : noise;
    return next < warmup ? next : warmup;
}

/* ---------------------------------------------------------------- adaptation updates */

static em_status m_step(em_adapt *adapt, int64_t done)
{
    const double start = em_clock();
    bool refused = false;
    const em_status status = em_take_m_step(adapt, done, &refused);

    if (adapt->estimator->windowed)
        em_window_aim(&adapt->window, refused ? (int64_t)adapt->window.from : done,
                      next_window_end(adapt, done));
    em_publish_to_chains(adapt);
    adapt->m_step_seconds += em_clock() - start;
    return status;
}

static void freeze(em_adapt *adapt)
{
    for (int64_t i = 0; adapt->adapts_step && i < adapt->n_pool; i++)
        adapt->pools[i].step_size = em_dual_averaging_final(&adapt->pools[i].averaging);
}

em_status em_adapt_update(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                          em_block *block, int64_t done)
{
    const double start = em_clock(), step_size = adapt->pools->step_size;
    em_status status = em_update_step_size(adapt);

    if (adapt->warmup.runs) {
        if (!status)
            status = em_limit_depth(adapt, step_size);
        adapt->exchange_seconds += em_clock() - start;
        if (!status)
            status = em_warmup_update(adapt, block, done);
        em_publish_to_chains(adapt);
        return status;
    }
    const bool publishes = adapt->noise && em_schedule_window_ends(&adapt->schedule, done);
    const bool m_steps = m_step_is_due(adapt, done);
    if (!status && publishes)
        status = em_gradient_noise_publish(adapt->noise);
    adapt->exchange_seconds += em_clock() - start;
    if (!status && m_steps)
        status = m_step(adapt, done);
    if (!status && (publishes || m_steps))
        status = refresh_after_mass(adapt, sampler, posterior, block, done);
    if (done == adapt->schedule.warmup)
        freeze(adapt);
    em_publish_to_chains(adapt);
    return status;
}
