/*
 * Stochastic gradient Nose-Poincare HMC as printed (Roychowdhury & Parthasarathy 2017, Alg. 5,
 * indices repaired), `paper: true`: the flow is that of sampler/thermostat/nose_poincare.h with
 * noisy U and g, and frictions B = b M on p and A on q; s, q, p and an exact H_0 are set anew for
 * each iteration; otherwise it would not be a sampler. Noise leaves the shell on which theta
 * follows exp(-U).
 */
#include "sampler/thermostat/sgnphmc.h"

em_status em_sgnphmc_set_up_printed(em_sgnphmc_sampler *s, int64_t n_chain, int64_t dim)
{
    const em_status status =
        em_nose_poincare_create(&s->thermostat.base.memory, n_chain, dim, s->Q, &s->flow);

    if (status)
        return status;
    s->flow->friction = s->options->diffusion;
    s->flow->q_friction = s->options->thermostat_diffusion;
    return EM_OK;
}

/* Makes evaluation k of an iteration, at the position of the flow. */
static em_status sgnphmc_printed_evaluate(em_sgnphmc_sampler *s, const em_step_context *context,
                                          const em_block *block, int64_t k)
{
    const em_stochastic_options *options = s->thermostat.options;

    return em_stochastic_evaluate(options, context, options->leapfrog_steps + 1, k,
                                  em_nose_poincare_query(s->flow, block->chain));
}

em_status em_sgnphmc_step_printed(em_sgnphmc_sampler *s, const em_step_context *context,
                                  em_block *block)
{
    const int64_t n_step = s->thermostat.options->leapfrog_steps;
    em_nose_poincare *flow = s->flow;
    em_status status = em_block_evaluate(context->posterior, block);

    if (status)
        return status;
    for (int64_t c = 0; c < block->n_chain; c++)
        flow->Q[c] = em_sgnphmc_mass_of(s, context, c);
    em_nose_poincare_start(flow, context, block);
    status = sgnphmc_printed_evaluate(s, context, block, 0);
    for (int64_t k = 1; !status && k <= n_step; k++) {
        em_nose_poincare_advance(flow, context);
        status = sgnphmc_printed_evaluate(s, context, block, k);
        em_nose_poincare_finish(flow, context);
    }
    if (!status)
        em_nose_poincare_store(flow, context, n_step, block);
    return status;
}
