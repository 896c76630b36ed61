/* The mass from the later half of a window: from sums that are kept by segments, or from draws that
 * are kept themselves. */
#include "adaptation/adaptation_internal.h"
#include "base/memory.h"
#include "par/world.h"

#include <string.h>

/* Adds the segments of the later half of a chain of this rank. Local. */
static void add_segments(const em_adapt *adapt, int64_t chain, int64_t done, double *sums)
{
    const em_warmup *course = &adapt->course;

    for (int64_t k = 0; k <= course->segment; k++) {
        const double *x = em_accumulators(adapt, chain, k);
        for (int64_t i = 0;
             course->segment_from[k] >= em_warmup_window_begin(done) && i < adapt->n_accumulator;
             i++)
            sums[i] += x[i];
    }
}

/* Adds the draws of the later half of a chain of this rank, which the window aims at. Local. */
static void add_draws(const em_adapt *adapt, int64_t chain, double *sums)
{
    const int64_t number = em_grid_first_chain(adapt->grid) + chain;

    for (int64_t slot = 0; slot < adapt->window.n_slot; slot++) {
        const double *row = em_window_sample(&adapt->window, adapt->grid, number, slot);
        if (row)
            em_add_sample(adapt, chain, &(em_observation){row, row + adapt->dim, NULL, NULL}, sums);
    }
}

/* adapt->pooled = the sums over the later half, of chains that are not flagged: one chain after the
 * other, because those of a matrix are many. Collective. */
static em_status pool_later_half(em_adapt *adapt, int64_t done)
{
    const int64_t first_chain = em_grid_first_chain(adapt->grid), n = adapt->n_accumulator;
    double *sums = NULL;
    em_status status = em_agree(em_allocate(n, sizeof *sums, &sums));

    if (!status)
        status = em_grid_begin_sum(adapt->grid, n);
    for (int64_t c = 0; !status && c < adapt->n_local_chain; c++) {
        if (adapt->course.flagged[first_chain + c])
            continue;
        memset(sums, 0, (size_t)n * sizeof *sums);
        if (adapt->keeps_draws)
            add_draws(adapt, c, sums);
        else
            add_segments(adapt, c, done, sums);
        em_grid_add_to_sum(adapt->grid, n, sums);
    }
    if (!status)
        em_grid_end_sum(adapt->grid, n, adapt->pooled);
    em_release(&sums);
    return status;
}

/* What is measured from the centre follows it to where publish has moved it: the mean of the pooled
 * positions. Local. */
static void recentre(em_adapt *adapt)
{
    const double n = adapt->pooled[0], *position = adapt->pooled + adapt->n_estimator;

    for (int64_t i = 0; i < adapt->dim; i++)
        adapt->sample[i] = position[i] / n;
    for (int64_t c = 0; !adapt->keeps_draws && c < adapt->n_local_chain; c++)
        for (int64_t k = 0; k <= adapt->course.segment; k++) {
            double *x = em_accumulators(adapt, c, k);
            for (int64_t i = 0; i < adapt->dim; i++)
                x[adapt->n_estimator + i] -= x[0] * adapt->sample[i];
            em_estimator_recentre(adapt->estimator, &adapt->form, adapt->sample, x);
        }
}

/* The mass from the sums over the later half, and a step size for it. Collective. */
em_status em_learn_from_half(em_adapt *adapt, int64_t done)
{
    em_pool *pool = adapt->pools;
    bool refused = false;
    em_status status = pool_later_half(adapt, done);

    adapt->s_count = em_grid_n_chain(adapt->grid) * (done - em_warmup_window_begin(done));
    if (!status)
        status = em_pooled_m_step(adapt, done, &refused);
    if (!status && !refused) {
        recentre(adapt);
        if (adapt->adapts_step)
            em_dual_averaging_start(&pool->averaging, pool->step_size, em_restart_factor(adapt));
    }
    return status;
}

/* Forgets the segments that windows to come do not look back on. Local. */
void em_drop_segments(em_adapt *adapt)
{
    em_warmup *course = &adapt->course;
    const int64_t from = em_warmup_window_begin(course->window), size = adapt->n_accumulator;
    int64_t first = 0;

    while (first < course->segment && course->segment_from[first] < from)
        first++;
    course->segment -= first;
    memmove(course->segment_from, course->segment_from + first,
            (size_t)(course->segment + 1) * sizeof *course->segment_from);
    for (int64_t c = 0; !adapt->keeps_draws && first > 0 && c < adapt->n_local_chain; c++) {
        memmove(em_accumulators(adapt, c, 0), em_accumulators(adapt, c, first),
                (size_t)((course->segment + 1) * size) * sizeof(double));
        memset(em_accumulators(adapt, c, course->segment + 1), 0,
               (size_t)((adapt->n_segment - course->segment - 1) * size) * sizeof(double));
    }
}
