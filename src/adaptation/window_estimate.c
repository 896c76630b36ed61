/*
 * The window estimate: the mass from the later half of the iterations so far. Its sums are kept in
 * segments of iterations, because later halves of successive windows overlap. A dense mass keeps
 * the draws themselves instead, which take less memory.
 */
#include "adaptation/adaptation_internal.h"
#include "base/memory.h"
#include "par/world.h"

#include <string.h>

/* Adds the segments that lie in the later half, of a chain of this rank. Local. */
static void add_segments(const em_adapt *adapt, int64_t chain, int64_t done, double *sums)
{
    const em_warmup *warmup = &adapt->warmup;

    for (int64_t k = 0; k <= warmup->segment; k++) {
        const double *x = em_accumulators(adapt, chain, k);
        for (int64_t i = 0;
             warmup->segment_from[k] >= em_warmup_window_begin(done) && i < adapt->n_accumulator;
             i++)
            sums[i] += x[i];
    }
}

/* Adds the draws kept of the later half, of a chain of this rank. Local. */
static void add_draws(const em_adapt *adapt, int64_t chain, double *sums)
{
    const int64_t number = em_grid_first_chain(adapt->grid) + chain;

    for (int64_t slot = 0; slot < adapt->window.n_slot; slot++) {
        const double *row = em_window_sample(&adapt->window, adapt->grid, number, slot);
        if (row)
            em_add_sample(adapt, chain, &(em_observation){row, row + adapt->dim, NULL, NULL}, sums);
    }
}

/* adapt->pooled = the sums over the later half of all chains that are not outlying. Chains are
 * added one at a time, because the sums of a matrix are large. Collective. */
static em_status pool_window(em_adapt *adapt, int64_t done)
{
    const int64_t first_chain = em_grid_first_chain(adapt->grid), n = adapt->n_accumulator;
    double *sums = NULL;
    em_status status = em_agree(em_allocate(n, sizeof *sums, &sums));

    if (!status)
        status = em_grid_begin_sum(adapt->grid, n);
    for (int64_t c = 0; !status && c < adapt->n_local_chain; c++) {
        if (adapt->warmup.outlying[first_chain + c])
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

/* Positions are summed relative to the pool's centre. An M-step moves the centre to the mean of the
 * pooled positions; this shifts the sums accordingly. Local. */
static void recentre(em_adapt *adapt)
{
    const double n = adapt->pooled[0], *position = adapt->pooled + adapt->n_estimator;

    for (int64_t i = 0; i < adapt->dim; i++)
        adapt->sample[i] = position[i] / n;
    for (int64_t c = 0; !adapt->keeps_draws && c < adapt->n_local_chain; c++)
        for (int64_t k = 0; k <= adapt->warmup.segment; k++) {
            double *x = em_accumulators(adapt, c, k);
            for (int64_t i = 0; i < adapt->dim; i++)
                x[adapt->n_estimator + i] -= x[0] * adapt->sample[i];
            em_estimator_recentre(adapt->estimator, &adapt->form, adapt->sample, x);
        }
}

/* Estimates the mass from the later half, and restarts dual averaging. Collective. */
em_status em_learn_from_window(em_adapt *adapt, int64_t done)
{
    em_pool *pool = adapt->pools;
    bool refused = false;
    em_status status = pool_window(adapt, done);

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

/* Drops the segments that no later window uses. Local. */
void em_drop_segments(em_adapt *adapt)
{
    em_warmup *warmup = &adapt->warmup;
    const int64_t from = em_warmup_window_begin(warmup->window), size = adapt->n_accumulator;
    int64_t first = 0;

    while (first < warmup->segment && warmup->segment_from[first] < from)
        first++;
    warmup->segment -= first;
    memmove(warmup->segment_from, warmup->segment_from + first,
            (size_t)(warmup->segment + 1) * sizeof *warmup->segment_from);
    for (int64_t c = 0; !adapt->keeps_draws && first > 0 && c < adapt->n_local_chain; c++) {
        memmove(em_accumulators(adapt, c, 0), em_accumulators(adapt, c, first),
                (size_t)((warmup->segment + 1) * size) * sizeof(double));
        memset(em_accumulators(adapt, c, warmup->segment + 1), 0,
               (size_t)((adapt->n_segment - warmup->segment - 1) * size) * sizeof(double));
    }
}
