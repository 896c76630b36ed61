/*
 * The model's own transition (em_model_latent.update): a Gibbs update of its parameters, and of what
 * it keeps beside them, each drawn from its law given all others (Geman & Geman 1984). An iteration
 * is `sweeps` of them.
 */
#include "base/memory.h"
#include "sampler/kernel/sampler.h"

extern const em_sampler_ops em_gibbs, em_lda_gibbs;

typedef struct gibbs_options {
    em_sampler_options common; /* which none of it reads */
    int64_t sweeps;
} gibbs_options;

static const em_field fields[] = {
    EM_INT(gibbs_options, sweeps, .minimum = 1, .maximum = 1e6, .fallback = "1",
           .doc = "updates of all of the model's parameters in an iteration"),
    {0}};

static const em_stat stats[] = {EM_STAT_LP, EM_STAT_COUNT};

typedef struct gibbs_sampler {
    em_sampler base;
    const gibbs_options *options;
} gibbs_sampler;

static em_status gibbs_create(const void *options, int64_t n_chain, int64_t dim, em_sampler **out)
{
    gibbs_sampler *s = NULL;
    em_status status = em_allocate(1, sizeof *s, &s);

    (void)n_chain, (void)dim;
    *out = NULL;
    if (status)
        return status;
    *s = (gibbs_sampler){{&em_gibbs}, options};
    *out = &s->base;
    return EM_OK;
}

static void gibbs_destroy(em_sampler *base)
{
    em_release(&base);
}

static em_status gibbs_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    const int64_t sweeps = ((const gibbs_sampler *)base)->options->sweeps;
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

/* Of both names. */
#define GIBBS                                                                                      \
    .options_size = sizeof(gibbs_options), .fields = fields, .stats = stats,                       \
    .create = gibbs_create, .destroy = gibbs_destroy, .step = gibbs_step, .by_model = true

const em_sampler_ops em_gibbs = {.name = "gibbs",
                                 .doc = "the model's own Gibbs update, for models that have one",
                                 .source = "Geman & Geman 1984",
                                 GIBBS};

/* The name under which topic models are known to be sampled. */
const em_sampler_ops em_lda_gibbs = {
    .name = "lda_gibbs",
    .doc = "gibbs for topic models: partially collapsed, exact",
    .source = "Magnusson, Jonsson, Villani & Broman 2018; Terenin et al. 2019",
    GIBBS};
