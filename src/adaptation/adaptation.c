/*
 * The adaptation engine: the loop over the phases of warmup. It is the same for both schedules,
 * whose phases are rows of the table em_phases (phases.c).
 */
#include "adaptation/adaptation_internal.h"
#include "base/memory.h"
#include "par/world.h"

#include <string.h>

/* After a new mass: draws momenta and thermostats, which depend on it, and searches for a step
 * size. There is no search for the initial step size if an earlier run has set it. Collective. */
static em_status renew(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
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

/* The first centre is the mean of the chains' positions. Collective. */
static em_status set_first_centre(em_adapt *adapt, const em_block *block)
{
    for (int64_t c = 0; !adapt->shares && c < block->n_chain; c++)
        memcpy(adapt->pools[c].centre, block->theta + c * block->stride,
               (size_t)adapt->dim * sizeof(double));
    if (!adapt->shares)
        return EM_OK;
    const em_status status = em_grid_begin_sum(adapt->grid, adapt->dim);
    for (int64_t c = 0; !status && c < block->n_chain; c++)
        em_grid_add_to_sum(adapt->grid, adapt->dim, block->theta + c * block->stride);
    if (!status)
        em_grid_end_sum(adapt->grid, adapt->dim, adapt->pools->centre);
    for (int64_t i = 0; i < adapt->dim; i++)
        adapt->pools->centre[i] /= (double)adapt->n_chain;
    return status;
}

/* Replaces the first mass by one from the curvature at the starts, unless steps would then be much
 * shorter, because the curvature there is not that of the posterior. Collective. */
static em_status try_curvature(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                               em_block *block)
{
    static const double much = 0.125;
    EM_SCOPED_BY(em_mass_destroy) em_mass *was = NULL;
    const double step_size = adapt->pools->step_size;
    em_status status = em_learn_first_curvature(adapt, posterior, block, &was);

    if (status || !was)
        return status;
    status = renew(adapt, sampler, posterior, block, 0);
    if (status || adapt->pools->step_size >= much * step_size)
        return status;
    em_restore_mass(adapt, &was);
    return renew(adapt, sampler, posterior, block, 0);
}

em_status em_adapt_start(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                         em_block *block, const double *inverse_curvature)
{
    const bool learns = adapt->plan && em_learns(adapt) && !adapt->has_step;
    em_status status = set_first_centre(adapt, block);

    if (!status && learns)
        status = em_learn_first_map(adapt, posterior);
    if (!status && learns)
        status = em_learn_first_variances(adapt, block, inverse_curvature);
    status = status ? status : renew(adapt, sampler, posterior, block, 0);
    return status || !learns ? status : try_curvature(adapt, sampler, posterior, block);
}

/* Leaves the phases that have ended after `done` iterations. Buffers and windows may end between
 * updates, which communicates nothing; other phases end at updates. Collective. */
static em_status leave_ended_phases(em_adapt *adapt, int64_t done)
{
    em_status status = EM_OK;

    while (!status && done >= em_phase_ends_at(adapt)) {
        const em_phase *phase = &em_phases[adapt->phase];
        em_phase_id next = phase->follower;
        if (phase->leave)
            status = phase->leave(adapt, done, &next);
        em_enter_phase(adapt, next, done);
    }
    return status;
}

em_status em_adapt_observe(em_adapt *adapt, em_posterior *posterior, const em_block *block,
                           int64_t iteration)
{
    em_status status = leave_ended_phases(adapt, iteration);
    const em_phase *phase = &em_phases[adapt->phase];

    for (int64_t c = 0; c < block->n_chain; c++) {
        adapt->acceptance[c] += block->acceptance[c];
        em_adapt_count_gradients(adapt, c, (int64_t)block->n_step[c]);
    }
    adapt->n_since++;
    for (int i = 0; !status && phase->learns && i < adapt->n_learner; i++)
        status = adapt->learner[i]->observe(adapt, posterior, block, iteration);
    return !status && phase->observe ? phase->observe(adapt, block, iteration) : status;
}

int64_t em_adapt_next_update(const em_adapt *adapt, int64_t done)
{
    const int64_t every = done < adapt->often ? 1 : adapt->adapt_every;
    const int64_t step_size = adapt->adapts_step ? (done / every + 1) * every : adapt->warmup;

    return em_least(em_least(step_size, em_phase_next_update(adapt, done)), adapt->warmup);
}

em_status em_adapt_update(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                          em_block *block, int64_t done)
{
    const em_phase *phase = &em_phases[adapt->phase];
    const double start = em_clock();
    bool renews = false;
    em_status status = em_update_step_size(adapt); /* dual averaging */
    const double updated = em_clock();

    if (!status && phase->update) /* where a window ends: the mass */
        status = phase->update(adapt, posterior, block, done, &renews);
    const double estimated = em_clock();
    for (int i = 0; !status && phase->learns && i < adapt->n_learner; i++)
        status = adapt->learner[i]->update(adapt, done, &renews);
    adapt->m_step_seconds += estimated - updated;
    adapt->exchange_seconds += em_clock() - estimated + updated - start;
    em_publish_to_chains(adapt);
    if (!status && renews)
        status = renew(adapt, sampler, posterior, block, done);
    if (!status)
        em_begin_e_step(adapt, done);
    status = status ? status : leave_ended_phases(adapt, done);
    em_publish_to_chains(adapt);
    return status;
}
