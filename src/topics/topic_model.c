#include "topics/topic_model.h"
#include "topics/lda_tokens.h"

#include "base/memory.h"
#include "math/simd/tokens.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- set up */

static double beta_of(const em_topic_options *options)
{
    return isnan(options->beta) ? EM_LDA_BETA : options->beta;
}

static em_status read_data(em_topic_model *self, const em_topic_options *options,
                           const em_model_context *context)
{
    em_status status =
        em_corpus_read(&options->corpus, 0, 0, context->shard, context->n_shard, &self->corpus);

    if (status)
        return status;
    self->topics = (em_topic_parameters){
        .form = (em_topic_form)options->parameters,
        .shape = {self->corpus->n_word, options->topics, em_topic_stride(options->topics)},
        .shape_of_mean = beta_of(options),
        .mean = options->prior_mean,
        .sd = options->prior_sd};
    self->model.data_hash = self->corpus->hash;
    return em_topic_record_create(options, context, self->corpus, &self->model.data_hash,
                                  &self->record);
}

static em_status allocate_arrays(em_topic_model *self, bool warm)
{
    const em_lda_shape *shape = &self->topics.shape;
    em_status status = em_allocate_all(EM_ARRAY(self->phi, shape->n_word * shape->stride),
                                       EM_ARRAY(self->count, self->n_chain * shape->n_topic),
                                       EM_ARRAY(self->density, self->n_chain));

    if (!status && warm)
        status = em_allocate(self->n_chain * em_local_n_token(self->local), sizeof *self->topic,
                             &self->topic);
    return status;
}

em_status em_topic_model_open(em_topic_model *self, const em_topic_options *options,
                              const em_model_context *context)
{
    em_status status;

    self->options = options;
    self->first_chain = context->first_chain;
    self->n_chain = context->n_chain;
    status = read_data(self, options, context);
    status = status ? status : em_topic_parameters_create(&self->topics);
    if (!status)
        status = em_local_create(self->corpus, options->topics, &options->local, &self->local);
    status = status ? status : allocate_arrays(self, options->local.warm_start);
    return status;
}

void em_topic_model_close(em_topic_model *self)
{
    em_topic_record_destroy(&self->record);
    em_topic_parameters_destroy(&self->topics);
    em_local_destroy(&self->local);
    em_corpus_destroy(&self->corpus);
    em_release_all(&self->phi, &self->count, &self->density, &self->topic);
}

void em_topic_model_declare(em_topic_model *self, int64_t dim, int n_block,
                            const em_parameters *block)
{
    const em_corpus *corpus = self->corpus;

    self->model.dim = dim;
    self->model.estimates = true;
    self->model.n_block = n_block;
    self->model.block = block;
    self->model.rows = (em_share){corpus->n_document, 1, corpus->first_document, corpus->n_local};
    em_topic_record_declare(self->record, &self->model, self->variable, self->average);
}

/* ---------------------------------------------------------------- chains */

bool em_topic_model_wants(const em_query *query, const em_parameters *block)
{
    return !query->block || query->block->first == block->first;
}

static int64_t local_chain(const em_topic_model *self, int64_t chain)
{
    return chain - self->first_chain;
}

uint16_t *em_topic_model_warm(const em_topic_model *self, int64_t chain)
{
    return self->topic ? self->topic + local_chain(self, chain) * em_local_n_token(self->local)
                       : NULL;
}

static double *count_of(const em_topic_model *self, int64_t chain)
{
    return self->count + local_chain(self, chain) * self->topics.shape.n_topic;
}

void em_topic_model_start(const em_topic_model *self, const em_draw *draw, double *theta)
{
    em_topic_parameters_start(&self->topics, draw, theta);
    if (self->topic)
        em_local_start(self->local, em_topic_model_warm(self, draw->chain));
}

static void finish_chain(em_topic_model *self, int64_t chain, const double *theta, double *density,
                         double *gradient)
{
    const int64_t n = self->topics.shape.n_topic;
    const double sweeps = (double)self->options->local.keep;
    double *count = count_of(self, chain), all = 0;

    *density *= EM_TOPIC_UNIT / sweeps;
    *density += em_topic_parameters_finish(&self->topics, theta, sweeps, gradient);
    memcpy(count, self->topics.count, (size_t)n * sizeof *count);
    for (int64_t k = 0; k < n; k++)
        all += count[k];
    if (all > 0)
        self->density[local_chain(self, chain)] = *density / all;
}

void em_topic_model_finish(em_topic_model *self, const em_query *sums, em_topic_slope *others)
{
    for (int64_t c = 0; c < sums->n_chain; c++) {
        const double *theta = sums->theta + c * sums->stride;
        double *gradient = sums->gradient + c * sums->stride;
        if (isnan(sums->log_density[c]))
            continue;
        finish_chain(self, sums->chain[c], theta, &sums->log_density[c], gradient);
        if (others)
            others(self, theta, gradient);
    }
}

double em_topic_model_density(em_topic_model *self, int64_t chain, const double *theta)
{
    double density = self->density[local_chain(self, chain)] * (double)self->corpus->n_token;

    em_topic_parameters_add_prior(&self->topics, theta, &density, NULL);
    return density;
}

em_status em_topic_model_take(em_topic_model *self, const em_update *after, int64_t c,
                              double log_density, const double *alpha)
{
    const em_chain_topics state = {.chain = after->chain[c],
                                   .log_density = log_density,
                                   .phi = self->phi,
                                   .count = count_of(self, after->chain[c]),
                                   .alpha = alpha,
                                   .beta = beta_of(self->options)};

    if (em_topic_record_wants_phi(self->record, after))
        em_topic_parameters_phi(&self->topics, after->theta + c * after->stride, self->phi);
    return em_topic_record_take(self->record, after, &state);
}

/* ---------------------------------------------------------------- reported variables */

void em_topic_model_report(em_topic_model *self, int64_t chain, const double *theta, double *out)
{
    if (em_topic_record_stores_phi(self->record))
        em_topic_parameters_phi(&self->topics, theta, self->phi);
    em_topic_record_report(self->record, chain, self->phi, out);
}

static em_status pool_averages(em_model *model)
{
    return em_topic_record_pool(((em_topic_model *)model)->record);
}

static void report_averages(em_model *model, int64_t chain, double *out)
{
    em_topic_record_report_averages(((em_topic_model *)model)->record, chain, out);
}

const em_model_averages em_topic_model_averages = {.pool = pool_averages,
                                                   .report = report_averages};

em_status em_topic_model_visit(em_model *model, const em_visitor *visitor)
{
    em_topic_model *self = (em_topic_model *)model;
    em_status status = em_topic_record_visit(self->record, visitor);

    if (!status)
        status =
            visitor->chains(visitor->context, "count", self->topics.shape.n_topic, self->count);
    status = status ? status : visitor->chains(visitor->context, "density", 1, self->density);
    if (!status && self->topic)
        status =
            visitor->sharded(visitor->context, "local", EM_NUMBER_UINT16, self->corpus->n_token,
                             self->corpus->first_token, em_local_n_token(self->local), self->topic);
    return status;
}

void em_topic_model_describe(const em_model *model, FILE *out)
{
    const em_topic_model *self = (const em_topic_model *)model;

    em_topic_record_describe(self->record, self->corpus->n_local, em_local_n_token(self->local),
                             out);
}
