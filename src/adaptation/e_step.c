/* The E-step: what a chain adds to its accumulators. */
#include "adaptation/adaptation_internal.h"
#include "adaptation/mass_window/subsampling_interval.h"
#include "mass/moments.h"

/* Iterations until the chains of a pool have s_count samples together. */
int64_t em_e_step_length(const em_adapt *adapt)
{
    const int64_t chains = em_chains_per_pool(adapt);

    return (adapt->s_count + chains - 1) / chains;
}

static void collect_thermostat(em_adapt *adapt, const em_block *block, int64_t chain)
{
    const em_step_context context = em_adapt_context(adapt, NULL, 0);
    const double q = adapt->thermostat(&context, block, chain);
    double *sums = em_accumulators(adapt, chain, adapt->warmup.segment) + em_thermostat_sums(adapt);

    sums[0] += q;
    sums[1] += q * q;
}

void em_add_sample(const em_adapt *adapt, int64_t chain, const em_observation *sample,
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

void em_collect(em_adapt *adapt, const em_block *block, int64_t chain, bool subsample)
{
    const em_observation sample = {
        block->theta + chain * block->stride, block->gradient + chain * block->stride,
        block->momentum + chain * block->stride,
        adapt->noise ? em_gradient_noise_last(adapt->noise, chain) : NULL};
    double *accumulator = em_accumulators(adapt, chain, adapt->warmup.segment);

    if (!em_all_finite(adapt->dim, sample.gradient) ||
        (sample.noise && !em_all_finite(adapt->dim, sample.noise)))
        return;
    em_add_sample(adapt, chain, &sample, accumulator);
    if (adapt->thermostat)
        collect_thermostat(adapt, block, chain);
    if (subsample) {
        double *velocity = adapt->sample + adapt->stride,
               *position = accumulator + adapt->n_estimator;
        em_mass_velocity(&adapt->chain_mass[chain], 1, sample.momentum, velocity);
        em_subsampling_interval_observe(adapt->dim, sample.momentum, velocity,
                                        position + adapt->dim);
    }
}
