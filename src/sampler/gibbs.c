/* The model's own transition (em_model_latent.update): a Gibbs update of its parameters and latent
 * variables, each drawn from its full conditional distribution (Geman & Geman 1984). An iteration
 * has `sweeps` updates. */
#include "sampler/gibbs.h"

const em_field em_gibbs_fields[] = {
    EM_INT(em_gibbs_options, sweeps, .minimum = 1, .maximum = 1e6, .fallback = "1",
           .doc = "number of updates of all parameters in an iteration"),
    {0}};

const em_stat em_gibbs_stats[] = {EM_STAT_LP, EM_STAT_COUNT};

em_status em_gibbs_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    const int64_t sweeps = ((const em_gibbs_options *)base->options)->sweeps;
    em_update update = {.n_chain = block->n_chain,
                        .stride = block->stride,
                        .chain = block->chain,
                        .theta = block->theta,
                        .log_density = block->log_density,
                        .seed = context->seed,
                        .warmup = context->warmup};
    em_status status = EM_OK;

    for (int64_t k = 0; status >= 0 && k < sweeps; k++) {
        update.number = context->iteration * sweeps + k;
        status = em_posterior_update(context->posterior, &update);
    }
    for (int64_t c = 0; c < block->n_chain; c++)
        block->stat[EM_STAT_LP][c] = block->log_density[c];
    return status;
}

const em_sampler_ops em_gibbs = {.name = "gibbs",
                                 .doc = "the model's own Gibbs update, for models that have one",
                                 .source = "Geman & Geman 1984",
                                 EM_GIBBS};
