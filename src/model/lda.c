/*
 * Latent Dirichlet allocation (EQUATIONS 22), sampled by its own means: partially collapsed Gibbs
 * (Magnusson et al. 2018; Terenin et al. 2019). An iteration draws
 *
 *     phi_k | z ~ Dirichlet(beta + n_k.),      then of every document, independently,
 *     z_j | phi, z of its other tokens ~ (alpha_k + n_dk) phi_{k, w_j},
 *
 * with the documents' weights integrated out: exact, and the counts n that the shards sum are
 * integers. The parameters are log alpha_1 .. log alpha_K and log beta; the topics of tokens are
 * local state of a chain.
 */
#include "base/memory.h"
#include "data/corpus.h"
#include "emass/model.h"
#include "math/tokens.h"
#include "model/lda_expanded.h"
#include "model/lda_held_out.h"
#include "model/lda_tokens.h"
#include "model/lda_topics.h"
#include "par/message.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const em_model_ops em_model_lda;

/* Iterations of warmup with documents of one level, and from step to step of the hyperparameters.
 */
enum { LEVEL_ITERATIONS = 3, LEARN_EVERY = 5 };

typedef struct lda_options {
    em_corpus_options corpus;
    char *test, *test_scored, *scratch;
    int64_t topics, test_every;
    double alpha, beta;
    bool store_phi;
    int fold_in;
    em_lda_expanded_options expanded;
} lda_options;

/* How test documents are folded in. */
enum { BY_EM, BY_GIBBS, N_FOLD_IN };

static const char *const fold_ins[] = {"em", "both", NULL};

/* Topics of the tokens of this shard, and what follows from those of all shards. */
typedef struct lda_chain {
    bool counted; /* count holds those of the topics */
    em_token_topics topic;
    int32_t *count; /* [n_word][stride] tokens of all shards */
    float *phi;     /* [n_word][stride] as last drawn */
    /* Of the last iteration. */
    double log_density, perplexity[N_FOLD_IN];
    double *share; /* [n_topic] of the tokens */
    double *hyper; /* [n_topic + 1] alpha, beta */
    /* Averages over the iterations of sampling. */
    int64_t n_average, n_scored;
    double averaged_perplexity[N_FOLD_IN];
    double *mean_share;  /* [n_topic] */
    double *probability; /* [n_fold_in][n_own] of held-out entries */
    float *mean;         /* [n_word][stride] of phi, given the topics of tokens */
} lda_chain;

enum { MOST_VARIABLES = 5, MOST_AVERAGES = 8 };

/* Topics go into a checkpoint in pieces of so many tokens of the corpus. */
enum { PIECE_TOKENS = 1 << 22 };

/* Numbers of a chain in a checkpoint, before its shares. */
enum {
    DENSITY,
    N_AVERAGE,
    N_SCORED,
    SCORE,
    AVERAGED = SCORE + N_FOLD_IN,
    N_HEAD = AVERAGED + N_FOLD_IN
};

typedef struct lda {
    em_model model;
    const lda_options *options;
    em_corpus *corpus; /* its words and sizes */
    em_tokens *tokens;
    em_held_out *held_out; /* NULL: none */
    em_lda_shape shape;
    int64_t shard, n_shard;
    int64_t first_chain, n_chain;
    lda_chain *chain; /* [n_chain] */
    int n_fold_in;    /* 0: no test documents */
    double pooled_perplexity[N_FOLD_IN];
    double **probability; /* [n_chain] of each */
    em_variable variable[MOST_VARIABLES], average[MOST_AVERAGES];
    /* Room to work in. */
    double *room, *alpha;
    int64_t *total, *sums;
    int64_t *wide;     /* [n_word][stride] counts, while shards are summed */
    float *phi;        /* [n_word][stride] a mean */
    double *rows;      /* [n_chain][...] and */
    uint16_t *ordered; /* [n_chain][tokens of a piece] for visits */
} lda;

#define AT(member) offsetof(lda_options, member)
static const em_field fields[] = {
    EM_CORPUS_FIELDS(lda_options),
    {"topics", EM_FIELD_INT, AT(topics), 2, EM_MOST_TOPICS, NULL, NULL, NULL, "number of topics"},
    {"alpha", EM_FIELD_REAL, AT(alpha), 1e-6, 1e3, "0.1", NULL, "learned",
     "of the prior of documents' weights; learned: one for each topic, in warmup"},
    {"beta", EM_FIELD_REAL, AT(beta), 1e-6, 1e3, "0.01", NULL, "learned",
     "of the prior of topics' laws of words; learned: in warmup"},
    {"test", EM_FIELD_PATH, AT(test), 0, 0, "", NULL, NULL,
     "corpus of the same words to be scored, and not trained on; absent: none"},
    {"test_scored", EM_FIELD_PATH, AT(test_scored), 0, 0, "", NULL, NULL,
     "corpus of the same documents as test, whose tokens are scored, while all of test is folded "
     "in; absent: test is split"},
    {"test_every", EM_FIELD_INT, AT(test_every), 1, 1e9, "10", NULL, NULL,
     "iterations from score to score of the test documents"},
    {"fold_in", EM_FIELD_CHOICE, AT(fold_in), 0, 0, "em", fold_ins, NULL,
     "of test documents: em, from phi alone; both: by the model's own Gibbs too, a score of its "
     "own"},
    {"scratch", EM_FIELD_PATH, AT(scratch), 0, 0, "", NULL, NULL,
     "folder for the topics of the tokens of a streamed corpus, on a disk of this node; absent: "
     "TMPDIR, or /tmp"},
    {"store_phi", EM_FIELD_BOOL, AT(store_phi), 0, 0, "false", NULL, NULL,
     "store phi of every draw, and not its average alone"},
    EM_LDA_EXPANDED_FIELDS(lda_options, expanded),
    {0}};
#undef AT

/* ---------------------------------------------------------------- the model */

static void destroy_chain(lda_chain *chain)
{
    em_tokens_release_chain(&chain->topic);
    em_release(&chain->count);
    em_release(&chain->phi);
    em_release(&chain->share);
    em_release(&chain->hyper);
    em_release(&chain->mean_share);
    em_release(&chain->probability);
    em_release(&chain->mean);
}

static void destroy(em_model *model)
{
    lda *self = (lda *)model;

    for (int64_t c = 0; self->chain && c < self->n_chain; c++)
        destroy_chain(&self->chain[c]);
    em_release(&self->chain);
    em_corpus_destroy(&self->corpus);
    em_tokens_destroy(&self->tokens);
    em_held_out_destroy(&self->held_out);
    em_release(&self->room);
    em_release(&self->alpha);
    em_release(&self->total);
    em_release(&self->sums);
    em_release(&self->wide);
    em_release(&self->phi);
    em_release(&self->rows);
    em_release(&self->ordered);
    em_release(&self->probability);
    em_release(&self);
}

/* Collective: all of a corpus of the words known. */
static em_status read_other(const lda *self, char *path, em_corpus **out)
{
    const em_corpus_options options = {.data = path, .format = self->options->corpus.format};

    return em_corpus_read(&options, self->corpus->n_word, 0, 0, 1, out);
}

static em_status check_test(const lda_options *options, const em_corpus *test,
                            const em_corpus *scored)
{
    return scored && scored->n_document != test->n_document
               ? em_fail(EM_EDATA,
                         "%s:1: found %" PRId64 " documents, expected the %" PRId64 " of %s",
                         options->test_scored, scored->n_document, test->n_document, options->test)
               : EM_OK;
}

/* Every shard keeps all test documents and scores those that are dealt to it. */
static em_status read_test(lda *self)
{
    const lda_options *options = self->options;
    em_corpus *test = NULL, *scored = NULL;
    em_status status = read_other(self, options->test, &test);

    if (!status && options->test_scored)
        status = read_other(self, options->test_scored, &scored);
    if (!status)
        status = check_test(options, test, scored);
    if (!status)
        status = em_held_out_create(test, scored, &self->shape, self->shard, self->n_shard,
                                    &self->held_out);
    if (!status && self->held_out->n_token == 0)
        status = em_fail(EM_EDATA,
                         "%s:1: found %" PRId64 " words, of which none is scored, "
                         "expected more",
                         options->test, test->n_token);
    if (!status)
        self->n_fold_in = options->fold_in + 1;
    if (!status && self->n_fold_in > BY_GIBBS)
        status = em_held_out_with_gibbs(self->held_out, &self->shape);
    if (!status)
        self->model.data_hash ^= test->hash ^ (scored ? scored->hash * 3 : 0);
    em_corpus_destroy(&test);
    em_corpus_destroy(&scored);
    return status;
}

static em_variable by_topic(const lda *self, const char *name, const char *axis)
{
    return (em_variable){.name = name, .n_axes = 1, .shape = {self->shape.n_topic}, .axis = {axis}};
}

static em_variable by_word(const lda *self, const char *name)
{
    return (em_variable){.name = name,
                         .storage = EM_STORE_SINGLE,
                         .unwatched = true,
                         .n_axes = 2,
                         .shape = {self->shape.n_topic, self->shape.n_word},
                         .axis = {"topic", "word"},
                         .label = {NULL, (const char *const *)self->corpus->name}};
}

static void set_variables(lda *self)
{
    em_variable *variable = self->variable, *average = self->average;
    em_model *model = &self->model;

    variable[model->n_variable++] = (em_variable){.name = "log_density"};
    variable[model->n_variable++] = by_topic(self, "topic_share", "rank");
    if (self->held_out)
        variable[model->n_variable++] = (em_variable){.name = "perplexity"};
    if (self->n_fold_in > BY_GIBBS)
        variable[model->n_variable++] = (em_variable){.name = "perplexity_gibbs"};
    if (self->options->store_phi)
        variable[model->n_variable++] = by_word(self, "phi");
    average[model->n_average++] = by_word(self, "phi");
    average[model->n_average++] = by_topic(self, "topic_share", "topic");
    average[model->n_average++] = by_topic(self, "alpha", "topic");
    average[model->n_average++] = (em_variable){.name = "beta"};
    if (self->held_out) {
        average[model->n_average++] = (em_variable){.name = "perplexity"};
        average[model->n_average++] = (em_variable){.name = "perplexity_of_all_chains"};
    }
    if (self->n_fold_in > BY_GIBBS) {
        average[model->n_average++] = (em_variable){.name = "perplexity_gibbs"};
        average[model->n_average++] = (em_variable){.name = "perplexity_gibbs_of_all_chains"};
    }
    model->variable = variable;
    model->average = average;
}

/* A shard's tokens of a piece of the corpus. */
static int64_t most_of_piece(const em_tokens *tokens)
{
    return tokens->n_token < PIECE_TOKENS ? tokens->n_token : PIECE_TOKENS;
}

static em_status make_room(lda *self)
{
    const int64_t n_topic = self->shape.n_topic, n = self->shape.n_word * self->shape.stride;
    const int64_t widths[] = {N_HEAD + 3 * n_topic + 1, n,
                              self->held_out ? self->held_out->n_own : 0};
    int64_t widest = 0;
    em_status status = em_allocate(self->shape.stride, sizeof *self->room, &self->room);

    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        widest = widths[i] > widest ? widths[i] : widest;
    const struct {
        void *array;
        int64_t count;
        size_t size;
    } room[] = {{&self->alpha, n_topic, sizeof(double)},
                {&self->total, n_topic, sizeof(int64_t)},
                {&self->sums, EM_LDA_SLOPES + n_topic, sizeof(int64_t)},
                {&self->wide, self->n_shard > 1 ? n : 0, sizeof(int64_t)},
                {&self->phi, n, sizeof(float)},
                {&self->rows, self->n_chain * widest, sizeof(double)},
                {&self->probability, self->n_chain, sizeof(double *)},
                {&self->ordered, self->n_chain * most_of_piece(self->tokens), sizeof(uint16_t)}};
    for (size_t i = 0; !status && i < sizeof room / sizeof *room; i++)
        status = em_allocate(room[i].count, room[i].size, room[i].array);
    return status;
}

static em_status create_chain(const lda *self, lda_chain *chain)
{
    const int64_t n = self->shape.n_word * self->shape.stride, n_topic = self->shape.n_topic;
    em_status status = em_tokens_add_chain(self->tokens, &chain->topic);

    for (int f = 0; f < N_FOLD_IN; f++)
        chain->perplexity[f] = chain->averaged_perplexity[f] = NAN;
    if (!status)
        status = em_allocate(n, sizeof *chain->count, &chain->count);
    if (!status)
        status = em_allocate(n, sizeof *chain->phi, &chain->phi);
    if (!status)
        status = em_allocate(n, sizeof *chain->mean, &chain->mean);
    if (!status)
        status = em_allocate(n_topic, sizeof *chain->share, &chain->share);
    if (!status)
        status = em_allocate(n_topic + 1, sizeof *chain->hyper, &chain->hyper);
    if (!status)
        status = em_allocate(n_topic, sizeof *chain->mean_share, &chain->mean_share);
    if (!status && self->held_out)
        status = em_allocate(self->n_fold_in * self->held_out->n_own, sizeof(double),
                             &chain->probability);
    return status;
}

static em_status create_chains(lda *self)
{
    em_status status = em_allocate(self->n_chain, sizeof *self->chain, &self->chain);

    for (int64_t c = 0; !status && c < self->n_chain; c++)
        status = create_chain(self, &self->chain[c]);
    return status;
}

/* NULL: everything is held in memory. */
static const char *scratch_of(const lda_options *options)
{
    const char *folder = options->scratch ? options->scratch : getenv("TMPDIR");

    return !options->corpus.stream ? NULL : folder && *folder ? folder : "/tmp";
}

static em_status set_up(lda *self)
{
    const lda_options *options = self->options;
    em_status status =
        em_corpus_read(&options->corpus, 0, 0, self->shard, self->n_shard, &self->corpus);

    if (status)
        return status;
    self->shape =
        (em_lda_shape){self->corpus->n_word, options->topics, em_topic_stride(options->topics)};
    self->model.dim = options->topics + 1;
    self->model.data_hash = self->corpus->hash;
    if (options->test)
        status = read_test(self);
    if (!status)
        status =
            em_tokens_create(self->corpus, options->topics, -1, scratch_of(options), &self->tokens);
    em_corpus_drop_documents(self->corpus);
    if (!status)
        status = make_room(self);
    if (!status)
        set_variables(self);
    return status ? status : create_chains(self);
}

static em_status create_expanded(const lda_options *options, const em_model_context *context,
                                 em_model **out)
{
    const em_lda_expanded_setup setup = {.corpus = &options->corpus,
                                         .own = &options->expanded,
                                         .test = options->test,
                                         .topics = options->topics,
                                         .test_every = options->test_every,
                                         .alpha = options->alpha,
                                         .beta = options->beta,
                                         .store_phi = options->store_phi};

    return em_lda_expanded_create(&setup, context, out);
}

static em_status create(const void *untyped, const em_model_context *context, em_model **out)
{
    const lda_options *options = untyped;
    lda *self;
    em_status status;

    if (options->expanded.parameters != EM_LDA_COLLAPSED)
        return create_expanded(options, context, out);
    status = em_allocate(1, sizeof *self, &self);
    if (status)
        return status;
    self->model.ops = &em_model_lda;
    self->options = options;
    self->shard = context->shard;
    self->n_shard = context->n_shard;
    self->first_chain = context->first_chain;
    self->n_chain = context->n_chain;
    status = set_up(self);
    if (status)
        destroy(&self->model);
    else
        *out = &self->model;
    return status;
}

static void describe(const em_model *model, FILE *out)
{
    const lda *self = (const lda *)model;

    fprintf(out,
            "# %" PRId64 " documents of %" PRId64 " tokens, %" PRId64 " words; this shard has "
            "%" PRId64 " documents of %" PRId64 " tokens\n",
            self->corpus->n_document, self->corpus->n_token, self->corpus->n_word,
            self->tokens->n_document, self->tokens->n_token);
    if (self->held_out)
        fprintf(out, "# %" PRId64 " test documents, %" PRId64 " tokens scored (%s)\n",
                self->held_out->n_document, self->held_out->n_token,
                self->options->test_scored ? EM_HELD_OUT_GIVEN_DOC : EM_HELD_OUT_DOC);
    if (self->n_fold_in > BY_GIBBS)
        fprintf(out, "# and %s\n", EM_HELD_OUT_GIBBS_DOC);
}

/* ---------------------------------------------------------------- an iteration */

static lda_chain *chain_of(const lda *self, int64_t number)
{
    return &self->chain[number - self->first_chain];
}

/* Hyperparameters are given, or begin so; topics begin by chance. */
static em_status place(em_model *model, const em_draw *draw, double *theta)
{
    const lda *self = (const lda *)model;
    const lda_options *options = self->options;
    lda_chain *chain = chain_of(self, draw->chain);

    for (int64_t k = 0; k < self->shape.n_topic; k++)
        theta[k] = log(isnan(options->alpha) ? 0.1 : options->alpha);
    theta[self->shape.n_topic] = log(isnan(options->beta) ? 0.01 : options->beta);
    chain->counted = false;
    return em_tokens_start(self->tokens, draw->seed, draw->chain, &chain->topic);
}

static double hyperparameters(lda *self, const double *theta)
{
    for (int64_t k = 0; k < self->shape.n_topic; k++)
        self->alpha[k] = exp(theta[k]);
    return exp(theta[self->shape.n_topic]);
}

/* Warmup begins with a few documents, which find topics in a moment, and doubles them. */
static int level_at(const lda *self, const em_update *update)
{
    const int64_t level = update->number / LEVEL_ITERATIONS;
    const int top = self->tokens->n_level - 1;

    return update->warmup && level < top ? (int)level : top;
}

static void learn(lda *self, const lda_chain *chain, double beta, double *theta)
{
    const int64_t n_topic = self->shape.n_topic;

    if (isnan(self->options->alpha)) {
        em_lda_learn_alpha(n_topic, self->sums, self->alpha);
        for (int64_t k = 0; k < n_topic; k++)
            theta[k] = log(self->alpha[k]);
    }
    if (isnan(self->options->beta))
        theta[n_topic] = log(em_lda_learn_beta(&self->shape, chain->count, self->total, beta));
}

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x < y) - (x > y);
}

/* From the tokens in each topic, in self->total. */
static void take_shares(const lda *self, lda_chain *chain, bool averaged)
{
    double all = 0;

    for (int64_t k = 0; k < self->shape.n_topic; k++)
        all += (double)self->total[k];
    for (int64_t k = 0; k < self->shape.n_topic; k++) {
        chain->share[k] = (double)self->total[k] / all;
        if (averaged)
            chain->mean_share[k] +=
                (chain->share[k] - chain->mean_share[k]) / (double)chain->n_average;
    }
    qsort(chain->share, (size_t)self->shape.n_topic, sizeof *chain->share, descending);
}

static void average_phi(const lda *self, lda_chain *chain)
{
    const int64_t n = self->shape.n_word * self->shape.stride;
    const float weight = 1 / (float)chain->n_average;

    for (int64_t i = 0; i < n; i++)
        chain->mean[i] += (self->phi[i] - chain->mean[i]) * weight;
}

/* self->phi is the mean of phi given the topics of all tokens. */
static em_status score(lda *self, const em_update *with, lda_chain *chain)
{
    const em_stream stream =
        em_fold_in_stream(with->seed, chain - self->chain + self->first_chain, with->number);
    int64_t sums[2 * N_FOLD_IN];
    em_status status;

    for (int f = 0; f < self->n_fold_in; f++) {
        const em_held_out_law law = {
            .phi = self->phi, .stream = f == BY_GIBBS ? &stream : NULL, .alpha = self->alpha};
        sums[2 * f] =
            em_held_out_score(self->held_out, &self->shape, &law, chain->n_scored,
                              chain->probability + f * self->held_out->n_own, &sums[2 * f + 1]);
    }
    status = with->shards->sum(with->shards->context, EM_OK, 2 * self->n_fold_in, sums);
    for (int f = 0; f < self->n_fold_in; f++) {
        chain->perplexity[f] = em_held_out_perplexity(self->held_out, sums[2 * f]);
        if (!status && !with->warmup)
            chain->averaged_perplexity[f] = em_held_out_perplexity(self->held_out, sums[2 * f + 1]);
    }
    chain->n_scored += !status && !with->warmup;
    return status;
}

/* What is reported of the state, and averaged. */
static em_status take_state(lda *self, const em_update *with, double beta, lda_chain *chain)
{
    const bool averages = !with->warmup;
    const bool scores = self->held_out && ((with->number + 1) % self->options->test_every == 0 ||
                                           (averages && chain->n_scored == 0));

    chain->n_average += averages;
    chain->log_density = em_lda_log_words(&self->shape, beta, chain->count, self->total) +
                         (double)self->sums[EM_LDA_DENSITY] * EM_LDA_UNIT;
    take_shares(self, chain, averages);
    if (scores || averages)
        em_lda_mean_phi(&self->shape, beta, chain->count, self->total, self->phi);
    if (averages)
        average_phi(self, chain);
    return scores ? score(self, with, chain) : EM_OK;
}

/* Counts of all shards; `own` is how this one has fared. */
static em_status sum_counts(lda *self, const em_update *with, em_status own, lda_chain *chain)
{
    const int64_t n = self->n_shard > 1 ? self->shape.n_word * self->shape.stride : 0;
    em_status status;

    for (int64_t i = 0; i < n; i++)
        self->wide[i] = chain->count[i];
    status = with->shards->sum(with->shards->context, own, n, self->wide);
    for (int64_t i = 0; i < n; i++)
        chain->count[i] = (int32_t)self->wide[i];
    return status;
}

/* phi given all topics. While warmup has few documents it is its mean, which is no draw but a
 * sooner start: the noise of a draw from few tokens would be learned by those that come next. */
static void find_phi(lda *self, const em_update *with, int64_t number, double beta)
{
    lda_chain *chain = chain_of(self, number);

    if (level_at(self, with) < self->tokens->n_level - 1)
        em_lda_mean_phi(&self->shape, beta, chain->count, self->total, chain->phi);
    else
        em_lda_draw_phi(&self->shape, with->seed, number, with->number, beta, chain->count,
                        self->room, self->total, chain->phi);
}

/* phi, then topics given phi. */
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
                            .sums = self->sums};
    em_status status;

    find_phi(self, with, number, beta);
    status = em_tokens_sweep(self->tokens, &sweep, &chain->topic);
    status = sum_counts(self, with, status, chain);
    if (!status)
        status = with->shards->sum(with->shards->context, EM_OK,
                                   EM_LDA_SLOPES + self->shape.n_topic, self->sums);
    return status;
}

static em_status update_chain(lda *self, const em_update *with, int64_t number, double *theta)
{
    lda_chain *chain = chain_of(self, number);
    const double beta = hyperparameters(self, theta);
    em_status status = EM_OK;

    if (!chain->counted) {
        status = em_tokens_count(self->tokens, &chain->topic, chain->count);
        status = sum_counts(self, with, status, chain);
    }
    if (!status)
        status = draw_topics(self, with, number, beta);
    chain->counted = !status;
    if (!status)
        status = take_state(self, with, beta, chain);
    if (!status && with->warmup && (with->number + 1) % LEARN_EVERY == 0)
        learn(self, chain, beta, theta);
    for (int64_t k = 0; k <= self->shape.n_topic; k++)
        chain->hyper[k] = exp(theta[k]);
    return status;
}

static em_status update(em_model *model, const em_update *with)
{
    lda *self = (lda *)model;
    em_status status = EM_OK;

    for (int64_t c = 0; !status && c < with->n_chain; c++) {
        status = update_chain(self, with, with->chain[c], with->theta + c * with->stride);
        with->log_density[c] = chain_of(self, with->chain[c])->log_density;
    }
    return status;
}

/* ---------------------------------------------------------------- what comes out */

/* [word][stride] as [topic][word]. */
static double *transpose(const lda *self, const float *phi, double *out)
{
    for (int64_t k = 0; k < self->shape.n_topic; k++)
        for (int64_t v = 0; v < self->shape.n_word; v++)
            *out++ = (double)phi[v * self->shape.stride + k];
    return out;
}

static em_status report(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    const lda *self = (const lda *)model;
    const lda_chain *chain = chain_of(self, draw->chain);

    (void)theta;
    *out++ = chain->log_density;
    memcpy(out, chain->share, (size_t)self->shape.n_topic * sizeof *out);
    out += self->shape.n_topic;
    for (int f = 0; f < self->n_fold_in; f++)
        *out++ = chain->perplexity[f];
    if (self->options->store_phi)
        transpose(self, chain->phi, out);
    return EM_OK;
}

static void report_averages(em_model *model, int64_t number, double *out)
{
    const lda *self = (const lda *)model;
    const lda_chain *chain = chain_of(self, number);
    const int64_t n_topic = self->shape.n_topic;

    out = transpose(self, chain->mean, out);
    memcpy(out, chain->mean_share, (size_t)n_topic * sizeof *out);
    memcpy(out + n_topic, chain->hyper, (size_t)(n_topic + 1) * sizeof *out);
    out += 2 * n_topic + 1;
    for (int f = 0; f < self->n_fold_in; f++) {
        *out++ = chain->averaged_perplexity[f];
        *out++ = self->pooled_perplexity[f];
    }
}

static em_status pool_averages(em_model *model)
{
    lda *self = (lda *)model;

    em_status status = EM_OK;

    for (int f = 0; f < N_FOLD_IN; f++)
        self->pooled_perplexity[f] = NAN;
    for (int f = 0; !status && f < self->n_fold_in && self->chain->n_scored > 0; f++) {
        for (int64_t c = 0; c < self->n_chain; c++)
            self->probability[c] = self->chain[c].probability + f * self->held_out->n_own;
        status = em_held_out_pool(self->held_out, self->n_chain, self->probability,
                                  &self->pooled_perplexity[f]);
    }
    return status;
}

/* ---------------------------------------------------------------- checkpoints */

static void state_to_row(const lda *self, const lda_chain *chain, double *row)
{
    const size_t bytes = (size_t)self->shape.n_topic * sizeof *row;

    row[DENSITY] = chain->log_density;
    row[N_AVERAGE] = (double)chain->n_average;
    row[N_SCORED] = (double)chain->n_scored;
    memcpy(row + SCORE, chain->perplexity, sizeof chain->perplexity);
    memcpy(row + AVERAGED, chain->averaged_perplexity, sizeof chain->averaged_perplexity);
    memcpy(row + N_HEAD, chain->share, bytes);
    memcpy(row + N_HEAD + self->shape.n_topic, chain->mean_share, bytes);
    memcpy(row + N_HEAD + 2 * self->shape.n_topic, chain->hyper, bytes + sizeof *row);
}

static void state_from_row(const lda *self, const double *row, lda_chain *chain)
{
    const size_t bytes = (size_t)self->shape.n_topic * sizeof *row;

    chain->log_density = row[DENSITY];
    chain->n_average = (int64_t)row[N_AVERAGE];
    chain->n_scored = (int64_t)row[N_SCORED];
    memcpy(chain->perplexity, row + SCORE, sizeof chain->perplexity);
    memcpy(chain->averaged_perplexity, row + AVERAGED, sizeof chain->averaged_perplexity);
    memcpy(chain->share, row + N_HEAD, bytes);
    memcpy(chain->mean_share, row + N_HEAD + self->shape.n_topic, bytes);
    memcpy(chain->hyper, row + N_HEAD + 2 * self->shape.n_topic, bytes + sizeof *row);
}

static em_status visit_state(lda *self, const em_visitor *visitor)
{
    const int64_t width = N_HEAD + 3 * self->shape.n_topic + 1;
    em_status status;

    for (int64_t c = 0; c < self->n_chain; c++)
        state_to_row(self, &self->chain[c], self->rows + c * width);
    status = visitor->chains(visitor->context, "state", width, self->rows);
    for (int64_t c = 0; !status && visitor->restores && c < self->n_chain; c++)
        state_from_row(self, self->rows + c * width, &self->chain[c]);
    return status;
}

/* The piece's tokens that this shard has: those from *first of them on, and *count. */
static void own_of_piece(const em_tokens *tokens, int64_t piece, int64_t total, int64_t *first,
                         int64_t *count)
{
    const int64_t begin = piece * PIECE_TOKENS, own_end = tokens->first_token + tokens->n_token;
    const int64_t from = tokens->first_token > begin ? tokens->first_token : begin;
    const int64_t end = own_end < begin + total ? own_end : begin + total;

    *count = end > from ? end - from : 0;
    *first = *count > 0 ? from - begin : 0;
}

static em_status copy_piece(lda *self, bool restores, int64_t first, int64_t count)
{
    em_status status = EM_OK;

    for (int64_t c = 0; !status && count > 0 && c < self->n_chain; c++) {
        uint16_t *ordered = self->ordered + c * count;
        status = restores
                     ? em_tokens_restore(self->tokens, ordered, first, count, &self->chain[c].topic)
                     : em_tokens_save(self->tokens, &self->chain[c].topic, first, count, ordered);
    }
    return status;
}

static em_status visit_piece(lda *self, const em_visitor *visitor, int64_t piece)
{
    const em_tokens *tokens = self->tokens;
    const int64_t left = tokens->n_all - piece * PIECE_TOKENS;
    const int64_t total = left < PIECE_TOKENS ? left : PIECE_TOKENS;
    int64_t first, count;
    char name[40];
    em_status status = EM_OK;

    own_of_piece(tokens, piece, total, &first, &count);
    const int64_t local = piece * PIECE_TOKENS + first - tokens->first_token;
    snprintf(name, sizeof name, piece ? "topics_%" PRId64 : "topics", piece);
    if (!visitor->restores)
        status = em_agree_first(copy_piece(self, false, local, count), 0);
    if (!status)
        status = visitor->dealt(visitor->context, name, EM_NUMBER_UINT16, total, first, count,
                                self->ordered);
    if (!status && visitor->restores)
        status = em_agree_first(copy_piece(self, true, local, count), 0);
    return status;
}

/* Topics in the order of the corpus; counts follow from them. */
static em_status visit_topics(lda *self, const em_visitor *visitor)
{
    em_status status = EM_OK;

    for (int64_t piece = 0; !status && piece * PIECE_TOKENS < self->tokens->n_all; piece++)
        status = visit_piece(self, visitor, piece);
    for (int64_t c = 0; visitor->restores && c < self->n_chain; c++)
        self->chain[c].counted = false;
    return status;
}

static em_status visit_mean(lda *self, const em_visitor *visitor)
{
    const int64_t n = self->shape.n_word * self->shape.stride;
    em_status status;

    for (int64_t c = 0; c < self->n_chain; c++)
        for (int64_t i = 0; i < n; i++)
            self->rows[c * n + i] = (double)self->chain[c].mean[i];
    status = visitor->chains(visitor->context, "phi", n, self->rows);
    for (int64_t c = 0; !status && visitor->restores && c < self->n_chain; c++)
        for (int64_t i = 0; i < n; i++)
            self->chain[c].mean[i] = (float)self->rows[c * n + i];
    return status;
}

/* Probabilities of held-out entries, by one way of folding in. */
static em_status visit_held_out(lda *self, const em_visitor *visitor, int fold_in)
{
    static const char *const name[] = {"held_out", "held_out_gibbs"};
    const em_held_out *held_out = self->held_out;
    const int64_t n = held_out->n_own, first = fold_in * n;
    const size_t bytes = (size_t)n * sizeof(double);
    em_status status;

    for (int64_t c = 0; c < self->n_chain; c++)
        memcpy(self->rows + c * n, self->chain[c].probability + first, bytes);
    status = visitor->dealt(visitor->context, name[fold_in], EM_NUMBER_DOUBLE, held_out->n_score,
                            held_out->first_score, n, self->rows);
    for (int64_t c = 0; !status && visitor->restores && c < self->n_chain; c++)
        memcpy(self->chain[c].probability + first, self->rows + c * n, bytes);
    return status;
}

static em_status visit(em_model *model, const em_visitor *visitor)
{
    lda *self = (lda *)model;
    em_status status = visit_state(self, visitor);

    if (!status)
        status = visit_topics(self, visitor);
    if (!status)
        status = visit_mean(self, visitor);
    for (int f = 0; !status && f < self->n_fold_in; f++)
        status = visit_held_out(self, visitor, f);
    return status;
}

const em_model_ops em_model_lda = {
    .name = "lda",
    .doc = "latent Dirichlet allocation: topics of a corpus, by Gibbs or stochastic gradients",
    .sampler = "lda_gibbs",
    .counts = true,
    .source = "Blei, Ng & Jordan 2003; sampled as in Magnusson et al. 2018",
    .options_size = sizeof(lda_options),
    .fields = fields,
    .create = create,
    .destroy = destroy,
    .report = report,
    .place = place,
    .describe = describe,
    .update = update,
    .visit = visit,
    .pool_averages = pool_averages,
    .report_averages = report_averages,
    .no_prior = "is conditioned on the lengths of its documents, and draws none anew"};
