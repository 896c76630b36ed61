/*
 * Random-walk Metropolis with the pooled covariance (Metropolis et al. 1953; Haario, Saksman &
 * Tamminen 2001; EQUATIONS 26), for a block of chains in lockstep. With W = L^-T L^-1 the inverse
 * mass, which warmup learns from the draws of all chains and then freezes:
 *
 *     theta' = theta + eps L^-T z,  z ~ N(0, I);  accept with probability min(1, p(theta') /
 *     p(theta))
 *
 * eps is adapted to the acceptance that is best in many dimensions, 0.234 (Roberts, Gelman & Gilks
 * 1997): for a normal target eps is then 2.38 / sqrt(dim). An iteration has one such step per
 * parameter, so that successive draws are as far apart as with gradients.
 */
#include "base/memory.h"
#include "math/rng.h"
#include "sampler/gradient_free/proposals.h"

#include <math.h>

typedef struct rwm_options {
    em_sampler_options common;
    int64_t steps; /* INT64_MIN: the dimension */
} rwm_options;

static const em_field fields[] = {EM_SAMPLER_FIELDS_WITH("adapt", "0.234", "5"),
                                  EM_INT(rwm_options, steps, .minimum = 1, .maximum = 1e6,
                                         .fallback = "auto", .word = "auto",
                                         .doc = "number of steps in an iteration, with one "
                                                "evaluation each; auto: the number of parameters"),
                                  {0}};

typedef struct rwm_sampler {
    em_sampler base;
    int64_t steps;
    em_proposals proposals; /* one row for each chain */
    double *accepted;       /* [n_chain] acceptance probabilities of an iteration, summed */
} rwm_sampler;

static em_status rwm_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    const int64_t given = ((const rwm_options *)base->options)->steps;
    rwm_sampler *s = (rwm_sampler *)base;

    s->steps = given == INT64_MIN ? dim : given;
    const em_status status = em_proposals_create(&base->memory, n_chain, dim, &s->proposals);
    return status ? status : em_own_all(&base->memory, EM_ARRAY(s->accepted, n_chain));
}

/* Evaluates proposal `number` of the iteration from the position of each chain. */
static em_status rwm_propose(rwm_sampler *s, const em_step_context *context, const em_block *block,
                             int64_t number)
{
    em_proposals *to = &s->proposals;

    for (int64_t c = 0; c < block->n_chain; c++)
        em_proposals_draw(to, context, block->chain[c], number, c);
    em_mass_apply(context->mass, EM_MAP_UNWHITEN, block->n_chain, to->z, to->direction);
    for (int64_t c = 0; c < block->n_chain; c++)
        em_proposals_move(to, block->theta + c * block->stride, context->step_size[c], c);
    return em_proposals_evaluate(to, context->posterior, block->n_chain, block->chain);
}

/* The acceptance probability min(1, p' / p); 0 if there is no density. */
static double rwm_acceptance(const rwm_sampler *s, const em_block *block, int64_t c)
{
    const double log_density = s->proposals.log_density[c];

    return isfinite(log_density) ? exp(fmin(0, log_density - block->log_density[c])) : 0;
}

static em_status rwm_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    rwm_sampler *s = (rwm_sampler *)base;

    for (int64_t c = 0; c < block->n_chain; c++)
        s->accepted[c] = 0;
    for (int64_t k = 0; k < s->steps; k++) {
        const em_status status = rwm_propose(s, context, block, k);
        if (status)
            return status;
        for (int64_t c = 0; c < block->n_chain; c++) {
            const em_stream stream = em_chain_stream(context, block, c, EM_RNG_ACCEPT);
            const double acceptance = rwm_acceptance(s, block, c);
            s->accepted[c] += acceptance;
            if (em_uniform(&stream, (uint64_t)k) < acceptance)
                em_proposals_accept(&s->proposals, c, block, c);
        }
    }
    for (int64_t c = 0; c < block->n_chain; c++)
        em_proposals_record(context, block, c, s->accepted[c] / (double)s->steps, (double)s->steps);
    return EM_OK;
}

static em_status rwm_probe(em_sampler *base, const em_step_context *context, const em_block *block,
                           double *acceptance)
{
    rwm_sampler *s = (rwm_sampler *)base;
    const em_status status = rwm_propose(s, context, block, 0);

    for (int64_t c = 0; !status && c < block->n_chain; c++)
        acceptance[c] = rwm_acceptance(s, block, c);
    return status;
}

const em_sampler_ops em_rwm = {
    .name = "rwm",
    .doc = "random-walk Metropolis with the pooled covariance: needs no gradient",
    .source = "Metropolis et al. 1953; Haario et al. 2001; Roberts, Gelman & Gilks 1997",
    .size = sizeof(rwm_sampler),
    .options_size = sizeof(rwm_options),
    .fields = fields,
    .stats = em_proposals_stats,
    .set_up = rwm_set_up,
    .step = rwm_step,
    .probe = rwm_probe,
    .without_gradient = true,
};
