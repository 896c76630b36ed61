/*
 * Latent Dirichlet allocation for stochastic-gradient kernels. The word distributions of topics are
 * parameters (topics/topic_parameters.h); the topics of tokens are drawn anew for every gradient
 * (topics/lda_local.h). Model lda becomes this one by its option `parameters`.
 */
#include "base/memory.h"
#include "emass/model/counts.h"
#include "emass/model/latent.h"
#include "topics/topic_model.h"

#include <math.h>

typedef struct expanded {
    em_topic_model base;
    em_parameters block;
    double *alpha; /* [n_topic], all the same */
    bool is_alpha_given;
} expanded;

static void destroy(em_model *model)
{
    expanded *self = (expanded *)model;

    em_topic_model_close(&self->base);
    em_release_all(&self->alpha, &self);
}

/* ---------------------------------------------------------------- the density */

static em_status add_prior(em_model *model, const em_query *query)
{
    expanded *self = (expanded *)model;

    for (int64_t c = 0; c < query->n_chain; c++)
        em_topic_parameters_add_prior(&self->base.topics, query->theta + c * query->stride,
                                      query->wanted == EM_WANT_GRADIENT ? NULL
                                                                        : &query->log_density[c],
                                      query->gradient + c * query->stride);
    return EM_OK;
}

/* Adds the counts of tokens and the density of their topics, in integer units. */
static em_status add_likelihood(em_model *model, const em_query *query)
{
    expanded *self = (expanded *)model;
    em_status status = EM_OK;

    for (int64_t c = 0; !status && c < query->n_chain; c++) {
        const em_local_query local = {.draw = em_query_draw(query, c),
                                      .rows = query->rows,
                                      .alpha = self->alpha,
                                      .phi = self->base.phi,
                                      .topic = em_topic_model_warm(&self->base, query->chain[c])};
        const em_local_sums sums = {.count = query->gradient + c * query->stride,
                                    .density = &query->log_density[c]};
        if (em_topic_parameters_phi(&self->base.topics, query->theta + c * query->stride,
                                    self->base.phi))
            status = em_local_sample(self->base.local, &local, &sums);
        else
            query->log_density[c] = NAN;
    }
    return status;
}

static void finish_likelihood(em_model *model, const em_query *sums)
{
    em_topic_model_finish((em_topic_model *)model, sums, NULL);
}

/* ---------------------------------------------------------------- chains */

static em_status draw_start(em_model *model, const em_draw *draw, double *theta)
{
    em_topic_model_start((const em_topic_model *)model, draw, theta);
    return EM_OK;
}

static em_status after_iteration(em_model *model, const em_update *after)
{
    expanded *self = (expanded *)model;
    em_status status = EM_OK;

    for (int64_t c = 0; !status && c < after->n_chain; c++)
        status = em_topic_model_take(&self->base, after, c, after->log_density[c], self->alpha);
    return status;
}

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

static em_status report(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    em_topic_model_report((em_topic_model *)model, draw->chain, theta, out);
    return EM_OK;
}

/* ---------------------------------------------------------------- set up */

static const em_model_ops ops = {
    .name = "lda",
    .doc = "latent Dirichlet allocation with expanded parameters",
    .source = "Patterson & Teh 2013; Ma, Chen & Fox 2015, eq. S.18; Li et al. 2016, D",
    .destroy = destroy,
    .add_prior = add_prior,
    .report = report,
    .start = draw_start,
    .describe = describe,
    .add_likelihood = add_likelihood,
    .latent =
        &(const em_model_latent){.visit = em_topic_model_visit, .after_iteration = after_iteration},
    .counts = &(const em_model_counts){.finish = finish_likelihood},
    .averages = &em_topic_model_averages};

static em_status set_up(expanded *self, const em_topic_options *options, double alpha,
                        const em_model_context *context)
{
    const em_topic_parameters *topics = &self->base.topics;
    em_status status = em_topic_model_open(&self->base, options, context);

    status = status ? status : em_allocate(options->topics, sizeof *self->alpha, &self->alpha);
    if (status)
        return status;
    for (int64_t k = 0; k < options->topics; k++)
        self->alpha[k] = isnan(alpha) ? EM_LDA_ALPHA : alpha;
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
        destroy(&self->base.model);
    else
        *out = &self->base.model;
    return status;
}
