/*
 * Latent Dirichlet allocation (EQUATIONS 22), with its own sampler: partially collapsed Gibbs
 * (Magnusson et al. 2018; Terenin et al. 2019). An iteration draws
 *
 *     phi_k | z ~ Dirichlet(beta + n_k.),      then of every document, independently,
 *     z_j | phi, z of its other tokens ~ (alpha_k + n_dk) phi_{k, w_j},
 *
 * with the documents' weights integrated out: exact, and the counts n that the shards sum are
 * integers. The parameters are log alpha_1 .. log alpha_K and log beta; the topics of tokens are
 * local state of a chain.
 */
#include "base/available_memory.h"
#include "base/memory.h"
#include "data/corpus/corpus.h"
#include "emass/model.h"
#include "emass/model/averages.h"
#include "emass/model/commands.h"
#include "emass/model/counts.h"
#include "emass/model/latent.h"
#include "math/simd/tokens.h"
#include "model/construct/construct.h"
#include "par/message.h"
#include "topics/lda_internal.h"
#include "topics/lda_tokens.h"
#include "topics/topic_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MEAN_ITERATIONS: the iterations of warmup over all documents that use the mean of phi.
 * LEARN_EVERY: the iterations between updates of the hyperparameters. ALPHA_FROM: the iterations
 * before the first update of alpha. Earlier, topics are still random and occur in all documents;
 * alpha would learn that, and two true topics would then stay together in one for very long. */
enum { MEAN_ITERATIONS = 40, LEARN_EVERY = 5, ALPHA_FROM = 20 };

/* COLLAPSED: the word distributions of topics are integrated out. In the other forms they are
 * parameters. */
enum { COLLAPSED = EM_TOPIC_FORMS };

static const char *const forms[] = {"expanded_mean", "expanded_natural", "collapsed", NULL};

static const char *const fold_ins[] = {"em", "both", NULL};

static const em_field fields[] = {
    EM_TOPIC_FIELDS("number of topics; with a list of numbers emass run makes one run for each",
                    "model"),
    EM_CHOICE(em_topic_options, fold_in, .fallback = "em", .choices = fold_ins,
              .doc = "how test documents are folded in: em, by EM; both: also by the Gibbs "
                     "sampler of the model, with a separate score"),
    EM_REAL(lda_options, alpha, .minimum = 1e-6, .maximum = 1e3, .fallback = "learned",
            .word = "learned",
            .doc = "alpha of the Dirichlet prior of documents' weights of topics; learned: one "
                   "number for each topic, from iteration 20 of warmup on; before that, and with "
                   "parameters other than collapsed, 0.1"),
    EM_REAL(em_topic_options, beta, .minimum = 1e-6, .maximum = 1e3, .fallback = "learned",
            .word = "learned",
            .doc = "beta of the Dirichlet prior of topics' word distributions; learned: in warmup; "
                   "before that, and with parameters other than collapsed, 0.01"),
    EM_PATH(lda_options, scratch, .fallback = "",
            .doc = "folder for the topics of the tokens of a streamed corpus, on a disk of this "
                   "node; absent: TMPDIR, or /tmp"),
    EM_CHOICE(em_topic_options, parameters, .fallback = "collapsed", .choices = forms,
              .doc = "collapsed: for lda_gibbs; expanded_mean: for sgrld and sgrhmc; "
                     "expanded_natural: for other samplers with minibatches"),
    EM_TOPIC_PHI_FIELDS,
    {0}};

/* ---------------------------------------------------------------- the model */

/* Allocates the word distributions, which the shards of a node share. */
static em_status share_laws(const lda *self, float **out)
{
    const int64_t n = self->shape.n_word, size = self->shape.stride * (int64_t)sizeof **out;

    return self->shards ? self->shards->share(self->shards->context, n, size, out)
                        : em_allocate(n, (size_t)size, out);
}

static void release_laws(const lda *self, float **laws)
{
    if (self->shards)
        self->shards->release(laws);
    else
        em_release(laws);
}

static void destroy(em_model *model)
{
    lda *self = (lda *)model;

    for (int64_t c = 0; self->chain && c < self->n_chain; c++) {
        em_tokens_release_chain(&self->chain[c].topic);
        release_laws(self, &self->chain[c].phi);
    }
    em_corpus_destroy(&self->corpus);
    em_tokens_destroy(&self->tokens);
    em_lda_exchange_release(&self->exchange);
    release_laws(self, &self->phi);
    em_release_owned(&self->memory);
    em_release(&self);
}

/* The largest number of a shard's tokens in one piece of the corpus. */
static int64_t largest_block(const em_tokens *tokens)
{
    return tokens->n_token < PIECE_TOKENS ? tokens->n_token : PIECE_TOKENS;
}

/* What the shards sum besides counts: the sums over documents (lda_tokens.h), those over words, and
 * the tokens of each topic. */
enum { LOG_WORDS, BETA_SLOPE, OVER_WORDS };

static int64_t over_words(const lda *self)
{
    return EM_LDA_SLOPES + self->shape.n_topic;
}

static int64_t n_sum(const lda *self)
{
    return over_words(self) + OVER_WORDS + self->shape.n_topic;
}

static em_status allocate_arrays(lda *self)
{
    const int64_t n_topic = self->shape.n_topic, stride = self->shape.stride;
    const em_status status = em_lda_exchange_create(self->shape.n_word, stride, self->shard,
                                                    self->n_shard, &self->exchange);

    return status
               ? status
               : em_own_all(&self->memory, EM_ARRAY(self->room, stride),
                            EM_ARRAY(self->alpha, n_topic), EM_ARRAY(self->tokens_of, n_topic),
                            EM_ARRAY(self->total, n_topic), EM_ARRAY(self->sums, n_sum(self)),
                            EM_ARRAY(self->ordered, self->n_chain * largest_block(self->tokens)));
}

static em_status create_chain(lda *self, lda_chain *chain)
{
    const int64_t n_own = self->own.end - self->own.first;
    em_status status = em_tokens_add_chain(self->tokens, &chain->topic);

    return status ? status
                  : em_own_all(&self->memory, EM_ARRAY(chain->count, n_own * self->shape.stride));
}

/* Creates the word distributions. Collective over the ranks of a group, of which none may leave
 * before the others. */
static em_status create_laws(lda *self, em_status own)
{
    const em_shards *shards = self->shards;
    em_status status = shards ? shards->sum(shards->context, own, 0, NULL) : own;

    for (int64_t c = 0; !status && c < self->n_chain; c++)
        status = share_laws(self, &self->chain[c].phi);
    return status;
}

static em_status create_chains(lda *self)
{
    em_status status = em_own_all(&self->memory, EM_ARRAY(self->chain, self->n_chain));

    for (int64_t c = 0; !status && c < self->n_chain; c++)
        status = create_chain(self, &self->chain[c]);
    return status;
}

/* The folder for scratch files; NULL: everything is held in memory. */
static const char *scratch_of(const lda_options *options)
{
    const char *folder = options->scratch ? options->scratch : getenv("TMPDIR");

    return !options->topic.corpus.stream ? NULL : folder && *folder ? folder : "/tmp";
}

/* Warmup begins with a few documents, from which topics are found quickly, and then doubles their
 * number. Level l is added at iteration l^2, so that larger numbers of documents have more
 * iterations. */
static int64_t first_iteration(int level)
{
    return (int64_t)level * level;
}

static em_status set_up(em_model *model, const void *untyped, const em_model_context *context)
{
    lda *self = (lda *)model;

    self->options = untyped;
    self->shard = context->shard;
    self->n_shard = context->n_shard;
    self->first_chain = context->first_chain;
    self->n_chain = context->n_chain;
    self->shards = context->shards;
    const em_topic_options *options = &self->options->topic;
    em_status status =
        em_corpus_read(&options->corpus, 0, 0, self->shard, self->n_shard, &self->corpus);
    if (status)
        return status;
    self->shape =
        (em_lda_shape){self->corpus->n_word, options->topics, em_topic_stride(options->topics),
                       options->topics >= EM_MANY_TOPICS};
    self->own = em_lda_own_words(self->shape.n_word, self->shard, self->n_shard);
    model->dim = options->topics + 1;
    model->data_hash = self->corpus->hash;
    status = em_topic_record_create(&self->memory, options, context, self->corpus,
                                    &model->data_hash, &self->record);
    if (!status)
        status = em_tokens_create(self->corpus, options->topics, -1, scratch_of(self->options),
                                  &self->tokens);
    if (!status)
        model->even_from = first_iteration(self->tokens->n_level - 1);
    status = status ? status : allocate_arrays(self);
    if (!status)
        em_topic_record_declare(self->record, model, self->variable, self->average);
    const double before = em_allocated_bytes();
    status = create_laws(self, status ? status : create_chains(self));
    self->chain_bytes = (em_allocated_bytes() - before) / (double)self->n_chain;
    if (!status && em_topic_record_stores_phi(self->record))
        status = share_laws(self, &self->phi);
    return status;
}

static double chain_bytes(const em_model *model)
{
    const lda *self = (const lda *)model;

    return self->chain_bytes + em_topic_record_chain_bytes(self->record) +
           (double)largest_block(self->tokens) * sizeof *self->ordered;
}

static em_status create(const void *untyped, const em_model_context *context, em_model **out)
{
    const lda_options *options = untyped;

    return options->topic.parameters == COLLAPSED
               ? em_model_build(untyped, context, out)
               : em_lda_expanded_create(&options->topic, options->alpha, context, out);
}

static void describe(const em_model *model, FILE *out)
{
    const lda *self = (const lda *)model;

    em_topic_record_describe(self->record, self->tokens->n_document, self->tokens->n_token, out);
}

/* ---------------------------------------------------------------- an iteration */

static lda_chain *chain_of(const lda *self, int64_t number)
{
    return &self->chain[number - self->first_chain];
}

/* Sets the hyperparameters to their given or initial values, and the topics at random. */
static em_status draw_start(em_model *model, const em_draw *draw, double *theta)
{
    const lda *self = (const lda *)model;
    const lda_options *options = self->options;
    lda_chain *chain = chain_of(self, draw->chain);

    for (int64_t k = 0; k < self->shape.n_topic; k++)
        theta[k] = log(isnan(options->alpha) ? EM_LDA_ALPHA : options->alpha);
    theta[self->shape.n_topic] =
        log(isnan(options->topic.beta) ? EM_LDA_BETA : options->topic.beta);
    chain->counted = false;
    return em_tokens_start(self->tokens, draw->seed, draw->chain, &chain->topic);
}

static double hyperparameters(lda *self, const double *theta)
{
    for (int64_t k = 0; k < self->shape.n_topic; k++)
        self->alpha[k] = exp(theta[k]);
    return exp(theta[self->shape.n_topic]);
}

static int level_at(const lda *self, const em_update *update)
{
    const int top = self->tokens->n_level - 1;
    int level = update->warmup ? 0 : top;

    while (level < top && update->number >= first_iteration(level + 1))
        level++;
    return level;
}

static bool learns(const em_update *with)
{
    return with->warmup && (with->number + 1) % LEARN_EVERY == 0;
}

static void learn(lda *self, int64_t number, double beta, double *theta)
{
    const int64_t n_topic = self->shape.n_topic;

    if (isnan(self->options->alpha) && number >= ALPHA_FROM) {
        em_lda_learn_alpha(n_topic, self->sums, self->alpha);
        for (int64_t k = 0; k < n_topic; k++)
            theta[k] = log(self->alpha[k]);
    }
    if (isnan(self->options->topic.beta))
        theta[n_topic] = log(em_lda_learn_beta(&self->shape, self->total,
                                               self->sums[over_words(self) + BETA_SLOPE], beta));
}

/* Makes the word distributions written by each shard visible to all shards. */
static void publish(const em_update *with, float *phi)
{
    with->shards->publish(with->shards->context, phi);
}

/* Records the state for reports and averages. */
static em_status take_state(lda *self, const em_update *with, int64_t number, double beta,
                            double *log_density)
{
    const lda_chain *chain = chain_of(self, number);
    float *phi = em_topic_record_stores_phi(self->record) ? self->phi : chain->phi;

    *log_density = (double)(em_lda_log_total(&self->shape, beta, self->total) +
                            self->sums[over_words(self) + LOG_WORDS] + self->sums[EM_LDA_DENSITY]) *
                   EM_TOPIC_UNIT;
    for (int64_t k = 0; k < self->shape.n_topic; k++)
        self->tokens_of[k] = (double)self->total[k];
    if (em_topic_record_wants_phi(self->record, with))
        em_lda_mean_phi(&self->shape, self->own, beta, chain->count, self->total, self->room, phi);
    if (em_topic_record_wants_all(self->record, with))
        publish(with, phi);
    const em_chain_topics state = {.chain = number,
                                   .log_density = *log_density,
                                   .phi = phi,
                                   .count = self->tokens_of,
                                   .alpha = self->alpha,
                                   .beta = beta};
    return em_topic_record_take(self->record, with, &state);
}

/* Whether warmup uses the mean of phi instead of a draw. It starts faster, because the next tokens
 * would adapt to the noise of a draw, which is largest with few documents. */
static bool takes_mean(const lda *self, const em_update *with)
{
    return with->warmup &&
           with->number < first_iteration(self->tokens->n_level - 1) + MEAN_ITERATIONS;
}

/* Draws phi given all topics: each shard draws some words for all shards. */
static em_status draw_phi(lda *self, const em_update *with, int64_t number, double beta)
{
    const lda_chain *chain = chain_of(self, number);
    const em_shards *shards = with->shards;
    const em_stream stream = {.seed = with->seed,
                              .chain = (uint64_t)number,
                              .iteration = (uint64_t)with->number,
                              .purpose = EM_RNG_TOPICS};

    em_lda_draw_weights(&self->shape, self->own, &stream, beta, chain->count, self->room,
                        self->total, chain->phi);
    em_status status = shards->sum(shards->context, EM_OK, self->shape.n_topic, self->total);
    if (status)
        return status;
    em_lda_scale(&self->shape, self->own, self->total, self->room, chain->phi);
    publish(with, chain->phi);
    return EM_OK;
}

static em_status find_phi(lda *self, const em_update *with, int64_t number, double beta)
{
    const lda_chain *chain = chain_of(self, number);
    em_status status;

    /* A draw that is stored may still be read by another shard. */
    if (em_topic_record_stores_phi(self->record)) {
        status = with->shards->sum(with->shards->context, EM_OK, 0, NULL);
        if (status)
            return status;
    }
    if (!takes_mean(self, with))
        return draw_phi(self, with, number, beta);
    em_lda_total(&self->shape, self->own, chain->count, self->total);
    status = with->shards->sum(with->shards->context, EM_OK, self->shape.n_topic, self->total);
    if (status)
        return status;
    em_lda_mean_phi(&self->shape, self->own, beta, chain->count, self->total, self->room,
                    chain->phi);
    publish(with, chain->phi);
    return EM_OK;
}

/* Sums over documents on the shard of each document, and over words on the shard that draws their
 * probabilities. Writes the tokens of each topic to `total`. */
static em_status sum_rest(const lda *self, const em_update *with, const lda_chain *chain,
                          double beta)
{
    int64_t *over = self->sums + over_words(self), *total = over + OVER_WORDS;

    over[LOG_WORDS] = em_lda_log_words(&self->shape, self->own, beta, chain->count);
    over[BETA_SLOPE] = learns(with) && isnan(self->options->topic.beta)
                           ? em_lda_slope(&self->shape, self->own, beta, chain->count)
                           : 0;
    em_lda_total(&self->shape, self->own, chain->count, total);
    em_status status = with->shards->sum(with->shards->context, EM_OK, n_sum(self), self->sums);
    memcpy(self->total, total, (size_t)self->shape.n_topic * sizeof *total);
    return status;
}

/* Draws phi, and then the topics given phi. */
static em_status draw_topics(lda *self, const em_update *with, int64_t number, double beta)
{
    lda_chain *chain = chain_of(self, number);
    const em_sweep sweep = {.seed = with->seed,
                            .chain = number,
                            .iteration = with->number,
                            .level = level_at(self, with),
                            .alpha = self->alpha,
                            .phi = chain->phi,
                            .count = chain->count,
                            .sums = self->sums,
                            .exchange = &self->exchange,
                            .shards = with->shards};
    em_status status = EM_OK;

    if (!chain->counted)
        status = em_tokens_count(self->tokens, &chain->topic, &sweep);
    status = status ? status : find_phi(self, with, number, beta);
    status = status ? status : em_tokens_sweep(self->tokens, &sweep, &chain->topic);
    return status ? status : sum_rest(self, with, chain, beta);
}

static em_status update_chain(lda *self, const em_update *with, int64_t number, double *theta,
                              double *log_density)
{
    lda_chain *chain = chain_of(self, number);
    const double beta = hyperparameters(self, theta);
    em_status status = draw_topics(self, with, number, beta);

    chain->counted = !status;
    status = status ? status : take_state(self, with, number, beta, log_density);
    if (!status && learns(with))
        learn(self, with->number, beta, theta);
    return status;
}

static em_status update(em_model *model, const em_update *with)
{
    em_status status = EM_OK;

    for (int64_t c = 0; !status && c < with->n_chain; c++)
        status = update_chain((lda *)model, with, with->chain[c], with->theta + c * with->stride,
                              &with->log_density[c]);
    return status;
}

/* Counts the tokens of each topic for the chains of this rank. Collective over the ranks of a
 * group. */
static em_status count_tokens(const lda *self, const em_update *at, int64_t *tokens)
{
    const int64_t n = self->shape.n_topic;

    for (int64_t c = 0; c < at->n_chain; c++)
        em_lda_total(&self->shape, self->own, chain_of(self, at->chain[c])->count, tokens + c * n);
    return at->shards->sum(at->shards->context, EM_OK, at->n_chain * n, tokens);
}

static em_status pool(em_model *model, const em_update *at)
{
    const lda *self = (const lda *)model;
    em_lda_learned learned = {.n_topic = self->shape.n_topic,
                              .n_chain = at->n_chain,
                              .stride = at->stride,
                              .alpha = isnan(self->options->alpha),
                              .beta = isnan(self->options->topic.beta),
                              .is_first = self->shard == 0};
    EM_SCOPED int64_t *tokens = NULL;

    if (!learned.alpha && !learned.beta)
        return EM_OK;
    em_status status =
        em_agree_first(em_allocate(at->n_chain * learned.n_topic, sizeof *tokens, &tokens), 0);
    status = status ? status : em_agree_first(count_tokens(self, at, tokens), 0);
    learned.tokens = tokens;
    return status ? status : em_lda_pool_priors(&learned, at->theta);
}

/* ---------------------------------------------------------------- reported variables */

static em_status report(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    const lda *self = (const lda *)model;

    (void)theta;
    em_topic_record_report(self->record, draw->chain, chain_of(self, draw->chain)->phi, out);
    return EM_OK;
}

static em_status pool_averages(em_model *model)
{
    return em_topic_record_pool(((lda *)model)->record);
}

static void report_averages(em_model *model, int64_t number, double *out)
{
    em_topic_record_report_averages(((lda *)model)->record, number, out);
}

/* ---------------------------------------------------------------- checkpoints */

static em_status visit(em_model *model, const em_visitor *visitor)
{
    lda *self = (lda *)model;
    em_status status = em_topic_record_visit(self->record, visitor);

    return status ? status : em_lda_visit_topics(self, visitor);
}

extern const em_model_commands em_topics_commands; /* topics/command */

const em_model_ops em_model_lda = {
    .commands = &em_topics_commands,
    .name = "lda",
    .doc = "latent Dirichlet allocation: topics of a corpus, by Gibbs or stochastic gradients",
    .sampler = "lda_gibbs",
    .source = "Blei, Ng & Jordan 2003; sampled as in Magnusson et al. 2018",
    .options_size = sizeof(lda_options),
    .fields = fields,
    .create = create,
    .state = &(const em_construction){sizeof(lda), set_up},
    .destroy = destroy,
    .report = report,
    .start = draw_start,
    .describe = describe,
    .latent =
        &(const em_model_latent){
            .update = update, .pool = pool, .visit = visit, .chain_bytes = chain_bytes},
    .counts = &(const em_model_counts){.all = true},
    .averages = &(const em_model_averages){.pool = pool_averages, .report = report_averages},
    .prior = &em_topic_no_prior};
