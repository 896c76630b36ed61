/*
 * The E-step: adds samples of a chain to its accumulators. In the initial phase, the mass is
 * estimated from the later half of the iterations so far. The later halves of successive windows
 * overlap, so the sums are kept for segments of iterations. For a dense mass the draws are stored
 * instead, which takes less memory.
 */
#include "adaptation/adaptation_internal.h"
#include "adaptation/mass_window/subsampling_interval.h"
#include "base/memory.h"
#include "math/finite.h"
#include "par/world.h"

#include <string.h>

/* Iterations until the chains of a pool have s_count samples together. */
int64_t em_e_step_length(const em_adapt *adapt)
{
    const int64_t chains = em_chains_per_pool(adapt);

    return (adapt->s_count + chains - 1) / chains;
}

/* Adds the position of local chain `chain` to its accumulators as one sample. */
static void add_sample(const em_adapt *adapt, int64_t chain, const em_observation *sample,
                       double *accumulator)
{
    const double *centre = em_pool_of(adapt, chain)->centre;
    double *position = accumulator + adapt->n_estimator;
    em_observation centred = *sample;

    for (int64_t i = 0; i < adapt->dim; i++) {
        adapt->sample[i] = sample->theta[i] - centre[i];
        position[i] += adapt->sample[i];
    }
    centred.theta = adapt->sample;
    em_estimator_observe(adapt->estimator, &adapt->form, &centred, accumulator);
}

/* The gradient noise of a chain at its last observation; NULL if noise is not estimated. */
static const double *noise_of(const em_adapt *adapt, int64_t chain)
{
    return adapt->noise ? em_gradient_noise_last(adapt->noise, chain) : NULL;
}

bool em_is_sample(const em_adapt *adapt, const em_block *block, int64_t chain)
{
    const double *noise = noise_of(adapt, chain);

    return em_all_finite(adapt->dim, block->gradient + chain * block->stride) &&
           (!noise || em_all_finite(adapt->dim, noise));
}

void em_collect(em_adapt *adapt, const em_block *block, int64_t chain, bool subsample,
                double *accumulator)
{
    const em_observation sample = {block->theta + chain * block->stride,
                                   block->gradient + chain * block->stride,
                                   block->momentum + chain * block->stride, noise_of(adapt, chain)};

    if (!em_is_sample(adapt, block, chain))
        return;
    add_sample(adapt, chain, &sample, accumulator);
    if (subsample) {
        double *velocity = adapt->sample + adapt->stride,
               *position = accumulator + adapt->n_estimator;
        em_mass_velocity(&adapt->chain_mass[chain], 1, sample.momentum, velocity);
        em_subsampling_interval_observe(adapt->dim, sample.momentum, velocity,
                                        position + adapt->dim);
    }
}

/* ---------------------------------------------------------------- windows of the initial phase */

/* Adds to the accumulators of a local chain its segments that lie in the later half. Local. */
static void add_segments(const em_adapt *adapt, int64_t chain, int64_t done, double *sums)
{
    const em_initial_phase *initial = adapt->initial;

    for (int64_t k = 0; k <= initial->segment; k++) {
        const double *x = em_accumulators(adapt, chain, k);
        for (int64_t i = 0;
             initial->segment_from[k] >= em_warmup_window_begin(done) && i < adapt->n_accumulator;
             i++)
            sums[i] += x[i];
    }
}

/* Adds to the accumulators of a local chain its draws that were kept of the later half. Local. */
static void add_draws(const em_adapt *adapt, int64_t chain, double *sums)
{
    const int64_t number = adapt->first_chain + chain;

    for (int64_t slot = 0; slot < adapt->window.n_slot; slot++) {
        const double *row = em_window_sample(&adapt->window, adapt->grid, number, slot);
        if (!row)
            continue;
        row = em_noncentred_draw(adapt, row);
        add_sample(adapt, chain, &(em_observation){row, row + adapt->dim, NULL, NULL}, sums);
    }
}

/* adapt->pooled = the sums over the later half of all chains that are not outlying. Chains are
 * added one at a time, because the sums of a matrix are large. Collective. */
static em_status pool_window(em_adapt *adapt, int64_t done)
{
    const int64_t first_chain = adapt->first_chain, n = adapt->n_accumulator;
    EM_SCOPED double *sums = NULL;
    em_status status = em_agree(em_allocate(n, sizeof *sums, &sums));

    status = status ? status : em_grid_begin_sum(adapt->grid, n);
    for (int64_t c = 0; !status && c < adapt->n_local_chain; c++) {
        if (adapt->outlying[first_chain + c])
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
        for (int64_t k = 0; k <= adapt->initial->segment; k++) {
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
    em_status status = pool_window(adapt, done);

    adapt->s_count = adapt->n_chain * (done - em_warmup_window_begin(done));
    status = status ? status : em_pooled_m_step(adapt, done);
    if (!status && adapt->noncentred && em_was_refused(adapt, pool))
        return em_exchange_noncentring(adapt);
    if (!status && !em_was_refused(adapt, pool)) {
        recentre(adapt);
        if (adapt->adapts_step)
            em_dual_averaging_start(&pool->averaging, pool->step_size, adapt->restart);
    }
    return status;
}

/* Drops the segments that no later window uses. Local. */
void em_drop_segments(em_adapt *adapt)
{
    em_initial_phase *initial = adapt->initial;
    const int64_t from = em_warmup_window_begin(initial->window), size = adapt->n_accumulator;
    int64_t first = 0;

    while (first < initial->segment && initial->segment_from[first] < from)
        first++;
    initial->segment -= first;
    memmove(initial->segment_from, initial->segment_from + first,
            (size_t)(initial->segment + 1) * sizeof *initial->segment_from);
    for (int64_t c = 0; !adapt->keeps_draws && first > 0 && c < adapt->n_local_chain; c++) {
        memmove(em_accumulators(adapt, c, 0), em_accumulators(adapt, c, first),
                (size_t)((initial->segment + 1) * size) * sizeof(double));
        memset(em_accumulators(adapt, c, initial->segment + 1), 0,
               (size_t)((adapt->n_segment - initial->segment - 1) * size) * sizeof(double));
    }
}
