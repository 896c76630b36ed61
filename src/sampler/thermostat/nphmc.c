/*
 * Nose-Poincare Hamiltonian Monte Carlo (EQUATIONS 11): the thermostat variables s and q drive the
 * chain through energies, deterministically, along the flow of sampler/thermostat/nose_poincare.h.
 * Every trajectory starts anew with
 *
 *     s = 1,  p ~ N(0, M),  q ~ N(0, Q),  H_0 = U + p^T W p / 2 + q^2 / (2 Q),
 *
 * which makes it a sampler: if s and H_0 are kept, as printed in Algorithm 4 of Roychowdhury &
 * Parthasarathy, the error of the covariance is as large as the covariance. There is no
 * Metropolis-Hastings step; the error is of order 2 in the step size. The momentum left in the
 * block is p / s ~ N(0, M).
 */
#include "sampler/thermostat/nose_poincare.h"

#include <math.h>

typedef struct nphmc_options {
    em_sampler_options common;
    int64_t leapfrog_steps;
    double thermostat_mass;
} nphmc_options;

static const em_field fields[] = {
    EM_SAMPLER_FIELDS_FROM("0.1", "0.8"),
    EM_INT(nphmc_options, leapfrog_steps, .minimum = 1, .maximum = 1e6, .fallback = "10",
           .doc = "steps of a trajectory"),
    EM_REAL(nphmc_options, thermostat_mass, .minimum = 1e-300, .maximum = 1e300, .fallback = "auto",
            .word = "auto",
            .doc = "Q, in squared units of time; too small a Q is unstable; auto: the dimension"),
    {0}};

typedef struct nphmc_sampler {
    em_sampler base;
    const nphmc_options *options;
    em_nose_poincare *flow;
} nphmc_sampler;

static em_status nphmc_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    nphmc_sampler *s = (nphmc_sampler *)base;

    s->options = base->options;
    const double Q = s->options->thermostat_mass;
    return em_nose_poincare_create(&base->memory, n_chain, dim, isnan(Q) ? (double)dim : Q,
                                   &s->flow);
}

static em_status nphmc_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    const nphmc_sampler *s = (const nphmc_sampler *)base;
    em_nose_poincare *flow = s->flow;
    const em_query query = em_nose_poincare_query(flow, block->chain);
    em_status status = EM_OK;

    em_nose_poincare_start(flow, context, block);
    for (int64_t k = 0; !status && k < s->options->leapfrog_steps; k++) {
        em_nose_poincare_advance(flow, context);
        status = em_posterior_evaluate(context->posterior, &query);
        em_nose_poincare_finish(flow, context);
    }
    if (!status)
        em_nose_poincare_store(flow, context, s->options->leapfrog_steps, block);
    return status;
}

const em_sampler_ops em_nphmc = {
    .name = "nphmc",
    .doc = "Nose-Poincare HMC: deterministic thermostat, no Metropolis-Hastings",
    .source = "Roychowdhury, Kulis, Parthasarathy 2016; Roychowdhury & Parthasarathy 2017, Alg. 4, "
              "corrected",
    .size = sizeof(nphmc_sampler),
    .options_size = sizeof(nphmc_options),
    .fields = fields,
    .stats = em_nose_poincare_stats,
    .set_up = nphmc_set_up,
    .step = nphmc_step,
    .n_extra = em_nose_poincare_n_extra,
};
