#include "topics/topic_model.h"
#include "topics/lda_tokens.h"

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
    return em_topic_record_create(&self->memory, options, context, self->corpus,
                                  &self->model.data_hash, &self->record);
}

static em_status allocate_arrays(em_topic_model *self, bool warm)
{
    const em_lda_shape *shape = &self->topics.shape;
    em_status status =
        em_own_all(&self->memory, EM_ARRAY(self->phi, shape->n_word * shape->stride),
                   EM_ARRAY(self->count, self->n_chain * shape->n_topic),
                   EM_ARRAY(self->density, self->n_chain), EM_ARRAY(self->weight, shape->n_topic));

    if (!status && warm)
        status = em_own_all(&self->memory,
                            EM_ARRAY(self->topic, self->n_chain * em_local_n_token(self->local)));
    return status;
}

em_status em_topic_model_open(em_topic_model *self, const em_topic_kind *kind,
                              const em_topic_options *options, const em_model_context *context)
{
    self->kind = kind;
    self->options = options;
    self->first_chain = context->first_chain;
    self->n_chain = context->n_chain;
    em_status status = read_data(self, options, context);
    status = status ? status : em_topic_parameters_create(&self->memory, &self->topics);
    if (!status)
        status = em_local_create(&self->memory, self->corpus, options->topics, &options->local,
                                 &self->local);
    return status ? status : allocate_arrays(self, options->local.warm_start);
}

void em_topic_model_destroy(em_model *model)
{
    em_topic_model *self = (em_topic_model *)model;

    em_corpus_destroy(&self->corpus);
    em_release_owned(&self->memory);
    em_release(&self);
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
    if (self->kind->set_weights)
        self->variable[self->model.n_variable++] = (em_variable){
            .name = "weight", .n_axes = 1, .shape = {self->topics.shape.n_topic}, .axis = {"rank"}};
    em_topic_record_declare(self->record, &self->model, self->variable, self->average);
}

/* ---------------------------------------------------------------- the density */

static int64_t local_chain(const em_topic_model *self, int64_t chain)
{
    return chain - self->first_chain;
}

/* The topics [em_local_n_token] of a chain of this rank, for warm starts; NULL: none. */
static uint16_t *warm_topics(const em_topic_model *self, int64_t chain)
{
    return self->topic ? self->topic + local_chain(self, chain) * em_local_n_token(self->local)
                       : NULL;
}

static double *count_of(const em_topic_model *self, int64_t chain)
{
    return self->count + local_chain(self, chain) * self->topics.shape.n_topic;
}

/* If a block moves alone, the prior of phi is needed only if the block is phi. A model of phi alone
 * gives no log prior with a gradient. */
em_status em_topic_model_add_prior(em_model *model, const em_query *query)
{
    em_topic_model *self = (em_topic_model *)model;
    const bool alone = !self->kind->add_prior;

    for (int64_t c = 0; c < query->n_chain; c++) {
        const double *theta = query->theta + c * query->stride;
        double *gradient = query->gradient + c * query->stride, *density = &query->log_density[c];
        if (!query->block || query->block->first == model->block->first)
            em_topic_parameters_add_prior(
                &self->topics, theta, alone && query->wanted == EM_WANT_GRADIENT ? NULL : density,
                gradient);
        if (!alone)
            self->kind->add_prior(self, theta, density, gradient);
    }
    return EM_OK;
}

/* Whether only the prior depends on the block that moves. */
static bool is_hyper(const em_topic_model *self, const em_parameters *block)
{
    return self->kind->has_hyper && block &&
           block->first == self->model.block[self->model.n_block - 1].first;
}

/* Stores counts of tokens where the gradient of phi will be, and sums for other parameters where
 * their gradients will be. Densities are in integer units. */
em_status em_topic_model_add_likelihood(em_model *model, const em_query *query)
{
    em_topic_model *self = (em_topic_model *)model;
    const em_topic_kind *kind = self->kind;
    em_status status = EM_OK;

    for (int64_t c = 0; !status && c < query->n_chain && !is_hyper(self, query->block); c++) {
        const double *theta = query->theta + c * query->stride;
        double *gradient = query->gradient + c * query->stride;
        em_local_query local = {.draw = em_query_draw(query, c),
                                .rows = query->rows,
                                .alpha = self->weight,
                                .phi = self->phi,
                                .topic = warm_topics(self, query->chain[c])};
        em_local_sums sums = {.count = gradient, .density = &query->log_density[c]};
        if (!em_topic_parameters_phi(&self->topics, theta, self->phi) ||
            (kind->set_weights && !kind->set_weights(self, theta)))
            query->log_density[c] = NAN;
        else
            status = kind->sample ? kind->sample(self, theta, gradient, &local, &sums)
                                  : em_local_sample(self->local, &local, &sums);
    }
    return status;
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

/* Replaces the sums over sweeps and documents by the log likelihood and its gradient. Stores
 * `count` and `density` of each chain for reports. */
void em_topic_model_finish(em_model *model, const em_query *sums)
{
    em_topic_model *self = (em_topic_model *)model;

    for (int64_t c = 0; c < sums->n_chain && !is_hyper(self, sums->block); c++) {
        const double *theta = sums->theta + c * sums->stride;
        double *gradient = sums->gradient + c * sums->stride;
        if (isnan(sums->log_density[c]))
            continue;
        finish_chain(self, sums->chain[c], theta, &sums->log_density[c], gradient);
        if (self->kind->finish)
            self->kind->finish(self, theta, gradient);
    }
}

const em_model_counts em_topic_model_all_counts = {.all = true, .finish = em_topic_model_finish};

/* ---------------------------------------------------------------- chains */

em_status em_topic_model_start(em_model *model, const em_draw *draw, double *theta)
{
    const em_topic_model *self = (const em_topic_model *)model;

    em_topic_parameters_start(&self->topics, draw, theta);
    if (self->topic) /* those that a start before it has left */
        em_local_start(self->local, warm_topics(self, draw->chain));
    if (self->kind->start)
        self->kind->start(self, draw, theta);
    return EM_OK;
}

/* The log posterior. The log likelihood per token of the last evaluation stands for that of all
 * tokens. */
static double log_density_of(em_topic_model *self, int64_t chain, const double *theta)
{
    double density = self->density[local_chain(self, chain)] * (double)self->corpus->n_token;

    em_topic_parameters_add_prior(&self->topics, theta, &density, NULL);
    self->kind->add_log_prior(self, theta, &density);
    return density;
}

static em_status after_iteration(em_model *model, const em_update *after)
{
    em_topic_model *self = (em_topic_model *)model;
    const em_topic_kind *kind = self->kind;
    em_status status = EM_OK;

    for (int64_t c = 0; !status && c < after->n_chain; c++) {
        const double *theta = after->theta + c * after->stride;
        const em_chain_topics state = {
            .chain = after->chain[c],
            .log_density = kind->add_log_prior ? log_density_of(self, after->chain[c], theta)
                                               : after->log_density[c],
            .phi = self->phi,
            .count = count_of(self, after->chain[c]),
            .alpha = self->weight,
            .beta = beta_of(self->options)};
        if (kind->set_weights)
            kind->set_weights(self, theta);
        if (em_topic_record_wants_phi(self->record, after))
            em_topic_parameters_phi(&self->topics, theta, self->phi);
        status = em_topic_record_take(self->record, after, &state);
    }
    return status;
}

/* ---------------------------------------------------------------- reported variables */

em_status em_topic_model_report(em_model *model, const em_draw *draw, const double *theta,
                                double *out)
{
    em_topic_model *self = (em_topic_model *)model;

    if (self->kind->report)
        out = self->kind->report(self, theta, out);
    if (self->kind->set_weights) { /* sorted by size, so that they have one order in all chains */
        const int64_t n = self->topics.shape.n_topic;
        self->kind->set_weights(self, theta);
        memcpy(out, self->weight, (size_t)n * sizeof *out);
        em_topic_order(n, out);
        out += n;
    }
    if (em_topic_record_stores_phi(self->record))
        em_topic_parameters_phi(&self->topics, theta, self->phi);
    em_topic_record_report(self->record, draw->chain, self->phi, out);
    return EM_OK;
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

static em_status visit(em_model *model, const em_visitor *visitor)
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

const em_model_latent em_topic_model_latent = {.visit = visit, .after_iteration = after_iteration};

void em_topic_model_describe(const em_model *model, FILE *out)
{
    const em_topic_model *self = (const em_topic_model *)model;

    em_topic_record_describe(self->record, self->corpus->n_local, em_local_n_token(self->local),
                             out);
}
