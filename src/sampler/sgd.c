/*
 * Stochastic gradient descent (EQUATIONS 3): a baseline and NOT a sampler. With the stochastic
 * gradient g ~ grad log p = -grad U and W = M^-1 as the preconditioner:
 *
 *     theta <- theta + eps W g(theta)
 *
 * Where it settles, the only spread is that of minibatch noise, which vanishes with eps.
 */
#include "sampler/langevin.h"

extern const em_sampler_ops em_sgd;

static const em_field fields[] = {EM_STOCHASTIC_FIELDS("0.001"), {0}};

static em_status sgd_create(const void *options, int64_t n_chain, int64_t dim, em_sampler **out)
{
    return em_langevin_create(&em_sgd, options, sizeof(em_langevin), n_chain, dim,
                              (em_langevin **)out);
}

static void sgd_move(em_langevin *s, const em_step_context *context, em_block *block, int64_t k)
{
    (void)k;
    em_mass_velocity(context->mass, block->n_chain, block->gradient, s->velocity);
    em_langevin_add(s, block, 1, s->velocity, block->theta);
}

static em_status sgd_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    em_langevin *s = (em_langevin *)base;
    em_status status = EM_OK;

    em_langevin_start(s, context, block);
    for (int64_t k = 0; !status && k < s->options->leapfrog_steps; k++) {
        status = em_langevin_gradient(s, context, block, k);
        em_langevin_move(s, context, block, k, sgd_move);
    }
    em_langevin_end(s, context, block);
    return status;
}

const em_sampler_ops em_sgd = {
    .name = "sgd",
    .doc = "stochastic gradient descent: a baseline, not a sampler (its spread vanishes with "
           "step_size)",
    .source = "Robbins & Monro 1951; baseline of Li et al. 2016",
    .options_size = sizeof(em_stochastic_options),
    .fields = fields,
    .stats = em_stochastic_stats,
    .create = sgd_create,
    .destroy = em_langevin_destroy,
    .step = sgd_step,
    .minibatches = true,
};
