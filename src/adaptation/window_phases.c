/*
 * The phases of the samplers without an initial phase: a first buffer, windows that double, a last
 * buffer (adaptation/schedule/warmup_schedule.h). In the windows the E-step collects samples.
 * M-steps take place at the ends of windows or, with the estimator momentum, after every s_count
 * pooled samples.
 */
#include "adaptation/adaptation_internal.h"
#include "adaptation/mass_window/subsampling_interval.h"
#include "base/memory.h"

#include <string.h>

/* The end of the window that iteration `done` is in; warmup where there is none. */
static int64_t next_window_end(const em_adapt *adapt, int64_t done)
{
    const em_schedule *schedule = &adapt->windows->schedule;

    for (int64_t i = 0; i < schedule->n_window; i++)
        if (schedule->window_end[i] > done)
            return schedule->window_end[i];
    return schedule->warmup;
}

static int64_t next_m_step(const em_adapt *adapt, int64_t done)
{
    const em_schedule *schedule = &adapt->windows->schedule;
    const int64_t next = adapt->windows->e_step_from + em_e_step_length(adapt);

    if (!em_learns(adapt))
        return schedule->warmup;
    if (adapt->estimator->windowed)
        return next_window_end(adapt, done);
    return next > done && next <= schedule->last ? next : schedule->warmup;
}

int64_t em_windows_next_update(const em_adapt *adapt, int64_t done)
{
    const int64_t m_step = next_m_step(adapt, done);

    return adapt->noise ? em_least(m_step, next_window_end(adapt, done)) : m_step;
}

em_status em_windows_observe(em_adapt *adapt, const em_block *block, int64_t iteration)
{
    const bool subsample =
        adapt->options->s_count_rule == EM_S_COUNT_INTERVAL &&
        em_subsampling_interval_takes(adapt->options, adapt->seed, adapt->n_m_step,
                                      iteration - adapt->windows->e_step_from + 1);

    for (int64_t c = 0; em_learns(adapt) && c < block->n_chain; c++)
        em_collect(adapt, block, c, subsample, em_accumulators(adapt, c, 0));
    em_window_take(&adapt->window, block, iteration);
    return EM_OK;
}

em_status em_windows_update(em_adapt *adapt, em_posterior *posterior, em_block *block, int64_t done,
                            bool *renews)
{
    (void)posterior, (void)block;
    *renews = em_learns(adapt) && adapt->n_m_step < adapt->most_m_steps &&
              next_m_step(adapt, done - 1) == done;
    return *renews ? em_take_m_step(adapt, done) : EM_OK;
}

/* A pool drops its samples. A window too short for an estimate keeps them: the next window
 * continues it. */
void em_begin_e_step(em_adapt *adapt, int64_t done)
{
    const bool windowed = adapt->estimator->windowed;
    const int64_t n = (adapt->shares ? adapt->n_local_chain : 1) * adapt->n_accumulator;

    if (!adapt->windows || !em_took_m_step(adapt, done))
        return;
    adapt->windows->e_step_from = done;
    for (int64_t i = 0; i < adapt->n_pool; i++)
        if (!windowed || !em_was_refused(adapt, &adapt->pools[i]))
            memset(adapt->accumulator + i * n, 0, (size_t)n * sizeof(double));
    const bool continues = adapt->shares && em_was_refused(adapt, adapt->pools);
    if (windowed)
        em_window_aim(&adapt->window, continues ? (int64_t)adapt->window.from : done,
                      next_window_end(adapt, done));
}
