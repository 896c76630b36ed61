/*
 * Latent Dirichlet allocation for stochastic-gradient kernels. The word distributions of topics are
 * parameters (topics/topic_parameters.h); the topics of tokens are drawn anew for every gradient
 * (topics/lda_local.h). Model lda becomes this one by its option `parameters`.
 */
#include "base/memory.h"
#include "emass/model/counts.h"
#include "topics/topic_model.h"

#include <math.h>

typedef struct expanded {
    em_topic_model base;
    em_parameters block;
    bool is_alpha_given;
} expanded;

static const em_topic_kind kind = {.add_prior = NULL};

/* Describes the model. The priors are given, because stochastic gradients do not learn them. */
static void describe(const em_model *model, FILE *out)
{
    const expanded *self = (const expanded *)model;
    const bool has_beta = self->base.topics.form == EM_TOPICS_MEAN;

    em_topic_model_describe(model, out);
    if (!self->is_alpha_given)
        fprintf(out, "# alpha %g: it is learned only with parameters: collapsed\n", EM_LDA_ALPHA);
    if (has_beta && isnan(self->base.options->beta))
        fprintf(out, "# beta %g: it is learned only with parameters: collapsed\n", EM_LDA_BETA);
}

/* ---------------------------------------------------------------- set up */

static const em_model_ops ops = {
    .name = "lda",
    .doc = "latent Dirichlet allocation with expanded parameters",
    .source = "Patterson & Teh 2013; Ma, Chen & Fox 2015, eq. S.18; Li et al. 2016, D",
    .describe = describe,
    .counts = &(const em_model_counts){.finish = em_topic_model_finish},
    EM_TOPIC_MODEL};

static em_status set_up(expanded *self, const em_topic_options *options, double alpha,
                        const em_model_context *context)
{
    const em_topic_parameters *topics = &self->base.topics;
    const em_status status = em_topic_model_open(&self->base, &kind, options, context);

    if (status)
        return status;
    for (int64_t k = 0; k < options->topics; k++)
        self->base.weight[k] = isnan(alpha) ? EM_LDA_ALPHA : alpha;
    self->is_alpha_given = !isnan(alpha);
    self->block = (em_parameters){"phi", 0, topics->n, topics->form == EM_TOPICS_MEAN};
    em_topic_model_declare(&self->base, topics->n, 1, &self->block);
    return EM_OK;
}

em_status em_lda_expanded_create(const em_topic_options *options, double alpha,
                                 const em_model_context *context, em_model **out)
{
    expanded *self;
    em_status status = em_allocate(1, sizeof *self, &self);

    if (status)
        return status;
    self->base.model.ops = &ops;
    status = set_up(self, options, alpha, context);
    if (status)
        em_topic_model_destroy(&self->base.model);
    else
        *out = &self->base.model;
    return status;
}
