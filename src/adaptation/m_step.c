/* The M-step: when the samples are there, it has the criterion estimate the mass
 * (mass/estimator.h), averages the estimate into the current mass, and publishes the result. The
 * criteria, such as that of the momenta, are in mass/. */
#include "adaptation/adaptation_internal.h"
#include "adaptation/mass_window/eigenvalue_clipping.h"
#include "adaptation/mass_window/subsampling_interval.h"
#include "adaptation/prior_proofs/draw_columns.h"
#include "base/memory.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

/*
 * kappa_k = (k + k0)^-eta, where k counts the estimates that the inverse mass already averages. For
 * the papers' criterion the initial mass counts as one; for the windowed ones it does not, because
 * it holds no samples.
 */
static double kappa(const em_adapt *adapt, int64_t n_published)
{
    const em_mass_options *options = adapt->options;
    const bool windowed = adapt->estimator->windowed;
    const double eta = isnan(options->kappa_eta) ? (windowed ? 0 : 1) : options->kappa_eta;
    const double k = (double)n_published + (windowed ? 0 : 1);

    return fmin(1, pow(k + options->kappa_k0, -eta));
}

/* W <- (1 - kappa) W + kappa W_est, into adapt->estimate. For estimators without windows (momentum)
 * the eigenvalues are clipped. Local. */
static em_status blend(em_adapt *adapt, const em_pool *pool, const double *accumulator,
                       em_samples *samples, double weight)
{
    const int64_t size = adapt->form.ops->size(&adapt->form);
    EM_SCOPED double *current = NULL;
    em_status status = em_estimate(adapt->estimator, &adapt->form, pool->mass, accumulator, samples,
                                   adapt->estimate);

    status = status ? status : em_allocate(size, sizeof *current, &current);
    if (status)
        return status;
    pool->mass->ops->write(pool->mass, &adapt->form, current);
    for (int64_t i = 0; i < size; i++)
        adapt->estimate[i] = (1 - weight) * current[i] + weight * adapt->estimate[i];
    if (!adapt->estimator->windowed)
        status = em_clip_eigenvalues(&adapt->form, current, adapt->estimate);
    return status;
}

/* The M-step of one pool: writes the new inverse mass to adapt->estimate, and its record. Local.
 * EM_NONFINITE: the estimate is refused and the mass kept. */
static em_status estimate(em_adapt *adapt, const em_pool *pool, const double *accumulator,
                          em_samples *samples, int64_t done, em_m_step *record)
{
    const double weight = kappa(adapt, pool->n_published);
    EM_SCOPED_BY(em_mass_destroy) em_mass *trial = NULL;
    em_status status = EM_OK;

    *record = (em_m_step){.iteration = (double)done,
                          .kappa = weight,
                          .s_count = (double)adapt->s_count,
                          .n_sample = accumulator[0],
                          .trace_deviation = NAN,
                          .diagonal_deviation = NAN,
                          .unevenness = NAN,
                          .thermostat_mass = pool->thermostat_mass};
    if (adapt->estimator->deviation)
        status = em_deviation(adapt->estimator, &adapt->form, pool->mass, accumulator,
                              &record->trace_deviation, &record->diagonal_deviation);
    if (!status)
        status = em_unevenness(adapt->estimator, &adapt->form, pool->mass, accumulator,
                               &record->unevenness);
    status = status ? status : blend(adapt, pool, accumulator, samples, weight);
    status = status ? status : em_mass_of(&adapt->form, adapt->estimate, &trial);
    if (status < 0)
        return status;
    if (status > 0)
        record->kappa = 0;
    const em_mass *next = trial ? trial : pool->mass;
    const em_status range = next->ops->range(next, &record->smallest, &record->largest);
    return range ? range : status;
}

/* Makes adapt->estimate the pool's mass, and moves the centre to the mean of the samples. Local. */
static em_status publish(em_adapt *adapt, em_pool *pool, const double *accumulator)
{
    const double *position = accumulator + adapt->n_estimator;
    em_mass *mass = NULL;
    em_status status = em_mass_of(&adapt->form, adapt->estimate, &mass);

    if (status)
        return status > 0
                   ? em_fail(EM_ENUMERIC, "an accepted inverse mass is not positive definite")
                   : status;
    for (int64_t i = 0; i < adapt->dim; i++)
        pool->centre[i] += position[i] / accumulator[0];
    em_mass_destroy(&pool->mass);
    pool->mass = mass;
    pool->n_published++;
    return EM_OK;
}

static void apply_interval_rule(em_adapt *adapt)
{
    const double *accumulator = adapt->pooled + adapt->n_estimator + adapt->dim;
    const double step = (double)adapt->s_count / adapt->options->rule_s_i;

    if (adapt->options->s_count_rule == EM_S_COUNT_INTERVAL &&
        em_subsampling_interval_holds(adapt->options, adapt->pools->mass, accumulator,
                                      adapt->sample))
        adapt->s_count += (int64_t)ceil(step);
}

/* Thins the samples to as many as an estimate in their span uses, in the coordinates of the map. */
static void thin_in_coordinates(const em_adapt *adapt, em_samples *samples)
{
    const int64_t dim = adapt->dim, n = em_least(samples->n, em_window_span(dim));

    for (int64_t r = 0; adapt->keeps_draws && r < n; r++)
        memmove(samples->row + r * 2 * dim,
                em_noncentred_draw(adapt, em_thinned_sample(samples, dim, n, r)),
                (size_t)(2 * dim) * sizeof *samples->row);
    samples->n = adapt->keeps_draws ? n : samples->n;
}

/* Rank 0 computes the estimate and broadcasts it, so that ranks on different processor types hold
 * the same bits. */
em_status em_pooled_m_step(em_adapt *adapt, int64_t done)
{
    struct {
        em_status status;
        em_m_step record;
    } result = {0};
    em_pool *pool = adapt->pools;
    em_samples samples = {0, NULL};
    em_status status = EM_OK;

    if (adapt->form.most_rank > 0)
        status = em_window_gather(&adapt->window, adapt->grid, adapt->outlying, &samples);
    if (!status && samples.row)
        thin_in_coordinates(adapt, &samples);
    if (!status && em_world_rank() == 0)
        result.status = estimate(adapt, pool, adapt->pooled, &samples, done, &result.record);
    em_release(&samples.row);
    if (status)
        return status;
    status = em_agree(result.status);
    if (status)
        return status;
    em_broadcast(&result, sizeof result);
    em_broadcast(adapt->estimate, (size_t)adapt->form.ops->size(&adapt->form) * sizeof(double));
    pool->m_step[adapt->n_m_step] = result.record;
    status = em_agree(result.status > 0 ? EM_OK : publish(adapt, pool, adapt->pooled));
    adapt->n_m_step += !status;
    return status;
}

/* The M-step of all chains together. Collective. */
static em_status shared_m_step(em_adapt *adapt, int64_t done)
{
    em_status status =
        em_grid_sum_chains(adapt->grid, adapt->n_accumulator, adapt->accumulator, adapt->pooled);

    status = status ? status : em_pooled_m_step(adapt, done);
    if (!status && !em_was_refused(adapt, adapt->pools))
        apply_interval_rule(adapt);
    return status;
}

/* Makes the M-step of each chain from its own samples (share: none). Collective only in that ranks
 * agree on errors. */
static em_status lone_m_steps(em_adapt *adapt, int64_t done)
{
    em_status status = EM_OK;

    for (int64_t i = 0; status >= 0 && i < adapt->n_pool; i++) {
        const double *accumulator = em_accumulators(adapt, i, 0);
        em_pool *pool = &adapt->pools[i];
        em_samples samples = {0, NULL};
        status = adapt->window.n_slot > 0 ? em_window_of_chain(&adapt->window, i, &samples) : EM_OK;
        if (!status)
            status =
                estimate(adapt, pool, accumulator, &samples, done, &pool->m_step[adapt->n_m_step]);
        em_release(&samples.row);
        status = status ? status : publish(adapt, pool, accumulator);
    }
    status = em_agree(status);
    adapt->n_m_step += !status;
    return status;
}

em_status em_take_m_step(em_adapt *adapt, int64_t done)
{
    return adapt->shares ? shared_m_step(adapt, done) : lone_m_steps(adapt, done);
}
