#include "model/lda_expanded.h"

#include "base/memory.h"
#include "math/tokens.h"
#include "model/topic_parameters.h"
#include "model/topic_record.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *const em_lda_parameters[] = {"collapsed", "expanded_mean", "expanded_natural", NULL};

typedef struct expanded {
    em_model model;
    em_lda_expanded_setup options;
    em_corpus *corpus;
    em_held_out *held_out; /* NULL: none */
    em_local *local;
    em_topic_parameters topics;
    em_topic_record *record;
    int64_t first_chain, n_chain;
    em_parameters block;
    em_variable variable[EM_TOPIC_VARIABLES], average[EM_TOPIC_AVERAGES];
    double *alpha;   /* [n_topic] */
    float *phi;      /* [n_word][stride] room */
    double *count;   /* [n_chain][n_topic] tokens of the last evaluation in each topic */
    uint16_t *topic; /* [n_chain][n_token] of warm starts; NULL: none */
} expanded;

static void destroy(em_model *model)
{
    expanded *self = (expanded *)model;

    em_topic_record_destroy(&self->record);
    em_topic_parameters_destroy(&self->topics);
    em_local_destroy(&self->local);
    em_held_out_destroy(&self->held_out);
    em_corpus_destroy(&self->corpus);
    em_release(&self->alpha);
    em_release(&self->phi);
    em_release(&self->count);
    em_release(&self->topic);
    em_release(&self);
}

static int64_t local_chain(const expanded *self, int64_t chain)
{
    return chain - self->first_chain;
}

static uint16_t *warm_topics(const expanded *self, int64_t chain)
{
    return self->topic ? self->topic + local_chain(self, chain) * em_local_n_token(self->local)
                       : NULL;
}

/* ---------------------------------------------------------------- the density */

static em_status add_prior(em_model *model, const em_query *query)
{
    expanded *self = (expanded *)model;

    for (int64_t c = 0; c < query->n_chain; c++)
        em_topic_parameters_add_prior(&self->topics, query->theta + c * query->stride,
                                      query->wanted == EM_WANT_GRADIENT ? NULL
                                                                        : &query->log_density[c],
                                      query->gradient + c * query->stride);
    return EM_OK;
}

/* Counts of tokens; the density of their topics, in units. */
static em_status add_likelihood(em_model *model, const em_query *query)
{
    expanded *self = (expanded *)model;
    em_status status = EM_OK;

    for (int64_t c = 0; !status && c < query->n_chain; c++) {
        const em_local_query local = {.draw = em_query_draw(query, c),
                                      .rows = query->rows,
                                      .alpha = self->alpha,
                                      .phi = self->phi,
                                      .topic = warm_topics(self, query->chain[c])};
        const em_local_sums sums = {.count = query->gradient + c * query->stride,
                                    .density = &query->log_density[c]};
        if (em_topic_parameters_phi(&self->topics, query->theta + c * query->stride, self->phi))
            status = em_local_sample(self->local, &local, &sums);
        else
            query->log_density[c] = NAN;
    }
    return status;
}

static void finish_likelihood(em_model *model, const em_query *sums)
{
    expanded *self = (expanded *)model;
    const double sweeps = (double)self->options.own->local.keep;
    const int64_t n_topic = self->topics.shape.n_topic;

    for (int64_t c = 0; c < sums->n_chain; c++) {
        double *count = self->count + local_chain(self, sums->chain[c]) * n_topic;
        if (isnan(sums->log_density[c]))
            continue;
        sums->log_density[c] *= EM_LOCAL_UNIT / sweeps;
        sums->log_density[c] +=
            em_topic_parameters_finish(&self->topics, sums->theta + c * sums->stride, sweeps,
                                       sums->gradient + c * sums->stride);
        memcpy(count, self->topics.count, (size_t)n_topic * sizeof *count);
    }
}

/* ---------------------------------------------------------------- chains */

static em_status place(em_model *model, const em_draw *draw, double *theta)
{
    const expanded *self = (const expanded *)model;

    em_topic_parameters_place(&self->topics, draw, theta);
    if (self->topic)
        em_local_start(self->local, warm_topics(self, draw->chain));
    return EM_OK;
}

static em_status watch(em_model *model, const em_update *after)
{
    expanded *self = (expanded *)model;
    const bool wants_phi = em_topic_record_wants_phi(self->record, after);
    em_status status = EM_OK;

    for (int64_t c = 0; !status && c < after->n_chain; c++) {
        const em_topic_look look = {.chain = after->chain[c],
                                    .log_density = after->log_density[c],
                                    .phi = self->phi,
                                    .count = self->count + local_chain(self, after->chain[c]) *
                                                               self->topics.shape.n_topic,
                                    .alpha = self->alpha,
                                    .beta = self->options.beta};
        if (wants_phi)
            em_topic_parameters_phi(&self->topics, after->theta + c * after->stride, self->phi);
        status = em_topic_record_take(self->record, after, &look);
    }
    return status;
}

static em_status report(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    expanded *self = (expanded *)model;

    if (self->options.store_phi)
        em_topic_parameters_phi(&self->topics, theta, self->phi);
    em_topic_record_report(self->record, draw->chain, self->phi, out);
    return EM_OK;
}

static void report_averages(em_model *model, int64_t chain, double *out)
{
    em_topic_record_report_averages(((const expanded *)model)->record, chain, out);
}

static em_status visit(em_model *model, const em_visitor *visitor)
{
    expanded *self = (expanded *)model;
    em_status status = em_topic_record_visit(self->record, visitor);

    if (!status)
        status =
            visitor->chains(visitor->context, "count", self->topics.shape.n_topic, self->count);
    if (!status && self->topic)
        status =
            visitor->dealt(visitor->context, "local", EM_NUMBER_UINT16, self->corpus->n_token,
                           self->corpus->first_token, em_local_n_token(self->local), self->topic);
    return status;
}

static void describe(const em_model *model, FILE *out)
{
    const expanded *self = (const expanded *)model;

    fprintf(out,
            "# %" PRId64 " documents of %" PRId64 " tokens, %" PRId64 " words; this shard has "
            "%" PRId64 " documents of %" PRId64 " tokens\n",
            self->corpus->n_document, self->corpus->n_token, self->corpus->n_word,
            self->corpus->n_local, em_local_n_token(self->local));
    if (self->held_out)
        fprintf(out, "# %" PRId64 " test documents, %" PRId64 " tokens scored (%s)\n",
                self->held_out->n_document, self->held_out->n_token, EM_HELD_OUT_DOC);
}

/* ---------------------------------------------------------------- set up */

static const em_model_ops ops = {
    .name = "lda",
    .doc = "latent Dirichlet allocation with expanded parameters",
    .source = "Patterson & Teh 2013; Ma, Chen & Fox 2015, eq. S.18; Li et al. 2016, D",
    .destroy = destroy,
    .add_prior = add_prior,
    .report = report,
    .place = place,
    .visit = visit,
    .watch = watch,
    .report_averages = report_averages,
    .describe = describe,
    .add_likelihood = add_likelihood,
    .finish_likelihood = finish_likelihood,
};

static em_status check_options(const em_lda_expanded_setup *options)
{
    if (isnan(options->alpha))
        return em_fail(EM_ECONFIG, "model.alpha: found learned, expected a number, as parameters "
                                   "is not collapsed");
    if (isnan(options->beta) && options->own->parameters == EM_LDA_EXPANDED_MEAN)
        return em_fail(EM_ECONFIG, "model.beta: found learned, expected a number, as parameters is "
                                   "not collapsed");
    return EM_OK;
}

static void set_model(expanded *self, const em_corpus *corpus)
{
    self->block = (em_parameters){"phi", 0, self->topics.n, self->topics.form == EM_TOPICS_MEAN};
    self->model.dim = self->topics.n;
    self->model.estimates = true;
    self->model.n_block = 1;
    self->model.block = &self->block;
    self->model.rows = (em_share){corpus->n_document, 1, corpus->first_document, corpus->n_local};
    em_topic_record_declare(self->record, &self->model, self->variable, self->average);
}

static em_status make_room(expanded *self)
{
    const em_lda_shape *shape = &self->topics.shape;
    em_status status = em_allocate(shape->n_topic, sizeof *self->alpha, &self->alpha);

    if (!status)
        status = em_allocate(shape->n_word * shape->stride, sizeof *self->phi, &self->phi);
    if (!status)
        status = em_allocate(self->n_chain * shape->n_topic, sizeof *self->count, &self->count);
    if (!status && self->options.own->local.warm_start)
        status = em_allocate(self->n_chain * em_local_n_token(self->local), sizeof *self->topic,
                             &self->topic);
    for (int64_t k = 0; !status && k < shape->n_topic; k++)
        self->alpha[k] = self->options.alpha;
    return status;
}

static em_status read_data(expanded *self, const em_model_context *context)
{
    const em_lda_expanded_setup *options = &self->options;
    const em_corpus_options test = {.data = options->test, .format = options->corpus->format};
    em_status status =
        em_corpus_read(options->corpus, 0, 0, context->shard, context->n_shard, &self->corpus);

    if (status)
        return status;
    self->topics.shape =
        (em_lda_shape){self->corpus->n_word, options->topics, em_topic_stride(options->topics)};
    self->model.data_hash = self->corpus->hash;
    return options->test ? em_topic_record_read_test(&test, &self->topics.shape, context,
                                                     &self->model.data_hash, &self->held_out)
                         : EM_OK;
}

static em_status set_up(expanded *self, const em_model_context *context)
{
    const em_lda_expanded_setup *options = &self->options;
    em_status status = check_options(options);

    if (!status)
        status = read_data(self, context);
    if (status)
        return status;
    self->topics.form =
        options->own->parameters == EM_LDA_EXPANDED_MEAN ? EM_TOPICS_MEAN : EM_TOPICS_NATURAL;
    self->topics.shape_of_mean = options->beta;
    self->topics.mean = options->own->prior_mean;
    self->topics.sd = options->own->prior_sd;
    status = em_topic_parameters_create(&self->topics);
    if (!status)
        status = em_local_create(self->corpus, options->topics, &options->own->local, &self->local);
    if (!status)
        status = make_room(self);
    const em_topic_record_options record = {.shape = self->topics.shape,
                                            .first_chain = self->first_chain,
                                            .n_chain = self->n_chain,
                                            .test_every = options->test_every,
                                            .store_phi = options->store_phi};
    if (!status)
        status = em_topic_record_create(&record, self->corpus, self->held_out, &self->record);
    if (!status)
        set_model(self, self->corpus);
    return status;
}

em_status em_lda_expanded_create(const em_lda_expanded_setup *options,
                                 const em_model_context *context, em_model **out)
{
    expanded *self;
    em_status status = em_allocate(1, sizeof *self, &self);

    if (status)
        return status;
    self->model.ops = &ops;
    self->options = *options;
    self->first_chain = context->first_chain;
    self->n_chain = context->n_chain;
    status = set_up(self, context);
    if (status)
        destroy(&self->model);
    else
        *out = &self->model;
    return status;
}
