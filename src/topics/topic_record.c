#include "topics/topic_record.h"

#include "math/simd/tokens.h"
#include "par/message.h"
#include "par/world.h"
#include "topics/lda_held_out.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of a chain, in a row: those listed here, the shares in order of size, the mean
 * shares, alpha, beta. */
enum {
    DENSITY,
    N_AVERAGE,
    N_SCORED,
    SCORE,
    AVERAGED = SCORE + EM_FOLD_INS,
    HEAD = AVERAGED + EM_FOLD_INS
};

/* CHUNK: the numbers of a chain in one piece of a checkpoint, for means of phi. SHOWN: the same for
 * the output. */
enum { CHUNK = 1 << 22, SHOWN = 1 << 17 };

struct em_topic_record {
    em_owner *owner; /* of its memory */
    const em_topic_options *options;
    const em_corpus *corpus;
    em_lda_shape shape;
    em_lda_words own;        /* whose phi this shard averages */
    const em_shards *shards; /* NULL: one */
    int64_t first_chain, n_chain;
    em_held_out *held_out; /* NULL: no score */
    int n_fold_in;         /* 0: no score */
    int64_t n_phi, n_chunk, width;
    double *row;         /* [n_chain][width] */
    float *mean;         /* [n_chain][own words][stride] of phi */
    double *chunk;       /* [n_chain][n_chunk] room for numbers of all words */
    double *alpha;       /* [n_topic] of EM for test documents; NULL: the model's own */
    double *probability; /* [n_fold_in][n_chain][n_own] of held-out entries, averaged */
    double pooled[EM_FOLD_INS];
};

/* ---------------------------------------------------------------- test documents */

static em_corpus_options options_of_other(const em_topic_options *options, char *path)
{
    return (em_corpus_options){.data = path, .format = options->corpus.format};
}

/* Reads a whole corpus with the words that are known. Collective. */
static em_status read_other(const em_topic_record *record, char *path, em_corpus **out)
{
    const em_corpus_options options = options_of_other(record->options, path);
    const em_corpus *known = record->corpus;
    em_status status = em_corpus_read(&options, known->n_word, 0, 0, 1, out);

    return status ? status : em_corpus_check_names(*out, known->name, known->path);
}

/* Warns if the test documents are those from which the topics are learned. */
static void warn_if_trained_on(const em_topic_record *record, const em_corpus *test)
{
    const em_topic_options *options = record->options;

    if (test->hash == record->corpus->hash || strcmp(options->test, options->corpus.data) == 0)
        em_say("warning: model.test: %s has the documents of model.data: perplexity is not "
               "held-out",
               options->test);
}

static em_status check_test(const em_topic_options *options, const em_corpus *test,
                            const em_corpus *scored)
{
    return scored && scored->n_document != test->n_document
               ? em_fail(EM_EDATA,
                         "%s:1: found %" PRId64 " documents, expected the %" PRId64 " of %s",
                         options->test_scored, scored->n_document, test->n_document, options->test)
               : EM_OK;
}

static em_status hold_out(em_topic_record *record, const em_model_context *context,
                          const em_corpus *test, const em_corpus *scored)
{
    em_status status = check_test(record->options, test, scored);

    if (!status)
        status = em_held_out_create(record->owner, test, scored, &record->shape, context->shard,
                                    context->n_shard, &record->held_out);
    if (!status && record->held_out->n_token == 0)
        status = em_fail(EM_EDATA,
                         "%s:1: found %" PRId64 " words, of which none is scored, expected more",
                         record->options->test, test->n_token);
    if (!status && record->options->fold_in == EM_FOLD_IN_GIBBS)
        status = em_held_out_with_gibbs(record->owner, record->held_out, &record->shape);
    return status;
}

/* NULL: there is no such corpus. */
static uint64_t hash_of_test(const em_corpus *test, const em_corpus *scored)
{
    return (test ? test->hash : 0) ^ (scored ? scored->hash * 3 : 0);
}

static em_status read_test(em_topic_record *record, const em_model_context *context, uint64_t *hash)
{
    EM_SCOPED_BY(em_corpus_destroy) em_corpus *test = NULL, *scored = NULL;
    em_status status = read_other(record, record->options->test, &test);

    if (!status && record->options->test_scored)
        status = read_other(record, record->options->test_scored, &scored);
    status = status ? status : hold_out(record, context, test, scored);
    if (!status) {
        warn_if_trained_on(record, test);
        record->n_fold_in = record->options->fold_in + 1;
        *hash ^= hash_of_test(test, scored);
    }
    return status;
}

em_status em_topic_test_hash(const em_topic_options *options, int64_t n_word, uint64_t *hash)
{
    const em_corpus_options of_test = options_of_other(options, options->test),
                            of_scored = options_of_other(options, options->test_scored);
    EM_SCOPED_BY(em_corpus_destroy) em_corpus *test = NULL, *scored = NULL;
    em_status status = EM_OK;

    if (of_test.data)
        status = em_corpus_open(&of_test, n_word, NULL, NULL, &test);
    if (!status && of_scored.data)
        status = em_corpus_open(&of_scored, n_word, NULL, NULL, &scored);
    *hash = status ? 0 : hash_of_test(test, scored);
    return status;
}

/* ---------------------------------------------------------------- set up */

static int64_t n_mean(const em_topic_record *record)
{
    return (record->own.end - record->own.first) * record->shape.stride;
}

static em_status allocate_arrays(em_topic_record *record)
{
    const int64_t n_own = record->held_out ? record->held_out->n_own : 0, n = record->n_chain;
    em_status status = em_own_all(record->owner, EM_ARRAY(record->row, n * record->width),
                                  EM_ARRAY(record->mean, n * n_mean(record)),
                                  EM_ARRAY(record->chunk, n * record->n_chunk),
                                  EM_ARRAY(record->probability, record->n_fold_in * n * n_own));

    if (!status && !isnan(record->options->fold_in_alpha))
        status = em_own_all(record->owner, EM_ARRAY(record->alpha, record->shape.n_topic));
    for (int64_t k = 0; !status && record->alpha && k < record->shape.n_topic; k++)
        record->alpha[k] = record->options->fold_in_alpha;
    for (int64_t c = 0; !status && c < n; c++)
        for (int f = 0; f < EM_FOLD_INS; f++) {
            record->row[c * record->width + SCORE + f] = NAN;
            record->row[c * record->width + AVERAGED + f] = NAN;
        }
    return status;
}

double em_topic_record_chain_bytes(const em_topic_record *record)
{
    const int64_t n_own = record->held_out ? record->held_out->n_own : 0;

    return (double)record->width * sizeof *record->row +
           (double)n_mean(record) * sizeof *record->mean +
           (double)record->n_chunk * sizeof *record->chunk +
           (double)(record->n_fold_in * n_own) * sizeof *record->probability;
}

em_status em_topic_record_create(em_owner *owner, const em_topic_options *options,
                                 const em_model_context *context, const em_corpus *corpus,
                                 uint64_t *hash, em_topic_record **out)
{
    em_status status = em_agree_first(em_own_all(owner, EM_ARRAY(*out, 1)), 0);

    if (status)
        return status;
    em_topic_record *record = *out;
    *record = (em_topic_record){
        .owner = owner,
        .options = options,
        .corpus = corpus,
        .shape = {corpus->n_word, options->topics, em_topic_stride(options->topics)},
        .own = em_lda_own_words(corpus->n_word, context->shard, context->n_shard),
        .shards = context->shards,
        .first_chain = context->first_chain,
        .n_chain = context->n_chain};
    record->n_phi = record->shape.n_word * record->shape.stride;
    record->n_chunk = record->n_phi < CHUNK ? record->n_phi : CHUNK;
    record->width = HEAD + 3 * record->shape.n_topic + 1;
    if (options->test_scored && !options->test)
        status = em_fail(EM_ECONFIG, "model.test_scored: found no test, expected the test "
                                     "documents that these tokens belong to");
    else if (options->test)
        status = read_test(record, context, hash);
    status = status ? status : allocate_arrays(record);
    return em_agree_first(status, 0);
}

static int64_t local_chain(const em_topic_record *record, int64_t chain)
{
    return chain - record->first_chain;
}

static double *row_of(const em_topic_record *record, int64_t chain)
{
    return record->row + local_chain(record, chain) * record->width;
}

static float *mean_of(const em_topic_record *record, int64_t chain)
{
    return record->mean + local_chain(record, chain) * n_mean(record);
}

/* The averages for one way of folding in, from the given chain on. */
static double *probability_of(const em_topic_record *record, int fold_in, int64_t chain)
{
    return record->probability +
           (fold_in * record->n_chain + local_chain(record, chain)) * record->held_out->n_own;
}

static double *shares(double *row)
{
    return row + HEAD;
}

static double *mean_shares(const em_topic_record *record, double *row)
{
    return row + HEAD + record->shape.n_topic;
}

/* alpha, then beta */
static double *hyper(const em_topic_record *record, double *row)
{
    return row + HEAD + 2 * record->shape.n_topic;
}

/* ---------------------------------------------------------------- an iteration */

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x < y) - (x > y);
}

void em_topic_order(int64_t n, double *weight)
{
    qsort(weight, (size_t)n, sizeof *weight, descending);
}

static void take_shares(const em_topic_record *record, const double *count, bool averages,
                        double *row)
{
    const int64_t n = record->shape.n_topic;
    double all = 0, *share = shares(row), *mean = mean_shares(record, row);

    for (int64_t k = 0; k < n; k++)
        all += count[k];
    for (int64_t k = 0; k < n; k++) {
        share[k] = all > 0 ? count[k] / all : 1 / (double)n;
        if (averages)
            mean[k] += (share[k] - mean[k]) / row[N_AVERAGE];
    }
    em_topic_order(n, share);
}

static void take_phi(const em_topic_record *record, const em_chain_topics *state, double n_average)
{
    const float weight = 1 / (float)n_average;
    float *mean = mean_of(record, state->chain);
    const float *phi = state->phi + record->own.first * record->shape.stride;

    for (int64_t i = 0; i < n_mean(record); i++)
        mean[i] += (phi[i] - mean[i]) * weight;
}

/* Gathers numbers first .. first + n - 1 of the means of a chain, for all words, on all shards.
 * Each shard adds the numbers of its words as integers with the same bits, and 0 for the others.
 * Collective over the ranks of a group. */
static void gather_means(const em_topic_record *record, int64_t chain, int64_t first, int64_t n,
                         double *out)
{
    const em_shards *shards = record->shards;
    const int64_t begin = record->own.first * record->shape.stride;
    const float *mean = mean_of(record, chain);

    for (int64_t i = 0; i < n; i++) {
        const int64_t own = first + i - begin;
        out[i] = own >= 0 && own < n_mean(record) ? (double)mean[own] : 0;
    }
    if (shards)
        (void)shards->sum(shards->context, EM_OK, n, (int64_t *)(void *)out);
}

static bool scores(const em_topic_record *record, const em_update *after, const double *row)
{
    return record->held_out && ((after->number + 1) % record->options->test_every == 0 ||
                                (!after->warmup && row[N_SCORED] == 0));
}

bool em_topic_record_wants_phi(const em_topic_record *record, const em_update *after)
{
    return !after->warmup || em_topic_record_wants_all(record, after);
}

bool em_topic_record_wants_all(const em_topic_record *record, const em_update *after)
{
    bool wants = false;

    for (int64_t c = 0; c < after->n_chain; c++)
        wants |= scores(record, after, row_of(record, after->chain[c]));
    return wants;
}

static em_status score(em_topic_record *record, const em_update *after,
                       const em_chain_topics *state, double *row)
{
    const em_held_out *h = record->held_out;
    const em_stream stream = em_fold_in_stream(after->seed, state->chain, after->number);
    int64_t sums[2 * EM_FOLD_INS];

    for (int f = 0; f < record->n_fold_in; f++) {
        const bool by_gibbs = f == EM_FOLD_IN_GIBBS;
        const em_held_out_parameters parameters = {
            .phi = state->phi,
            .stream = by_gibbs ? &stream : NULL,
            .alpha = record->alpha && !by_gibbs ? record->alpha : state->alpha};
        sums[2 * f] = em_held_out_score(h, &record->shape, &parameters, (int64_t)row[N_SCORED],
                                        probability_of(record, f, state->chain), &sums[2 * f + 1]);
    }
    em_status status =
        after->shards->sum(after->shards->context, EM_OK, 2 * record->n_fold_in, sums);
    for (int f = 0; f < record->n_fold_in; f++) {
        row[SCORE + f] = em_held_out_perplexity(h, sums[2 * f]);
        if (!status && !after->warmup)
            row[AVERAGED + f] = em_held_out_perplexity(h, sums[2 * f + 1]);
    }
    row[N_SCORED] += !status && !after->warmup;
    return status;
}

em_status em_topic_record_take(em_topic_record *record, const em_update *after,
                               const em_chain_topics *state)
{
    const bool averages = !after->warmup;
    const int64_t n = record->shape.n_topic;
    double *row = row_of(record, state->chain);
    const bool is_due = scores(record, after, row);

    row[DENSITY] = state->log_density;
    row[N_AVERAGE] += averages;
    take_shares(record, state->count, averages, row);
    memcpy(hyper(record, row), state->alpha, (size_t)n * sizeof *row);
    hyper(record, row)[n] = state->beta;
    if (averages)
        take_phi(record, state, row[N_AVERAGE]);
    return is_due ? score(record, after, state, row) : EM_OK;
}

/* ---------------------------------------------------------------- reported variables */

static em_variable by_topic(const em_topic_record *record, const char *name, const char *axis)
{
    return (em_variable){
        .name = name, .n_axes = 1, .shape = {record->shape.n_topic}, .axis = {axis}};
}

static em_variable phi_of(const em_topic_record *record)
{
    return (em_variable){.name = "phi",
                         .storage = EM_STORE_SINGLE,
                         .unwatched = true,
                         .n_axes = 2,
                         .shape = {record->shape.n_topic, record->shape.n_word},
                         .axis = {"topic", "word"},
                         .label = {NULL, (const char *const *)record->corpus->name}};
}

void em_topic_record_declare(const em_topic_record *record, em_model *model, em_variable *variable,
                             em_variable *average)
{
    static const char *const name[] = {"perplexity", "perplexity_gibbs"};
    static const char *const pooled[] = {"perplexity_of_all_chains",
                                         "perplexity_gibbs_of_all_chains"};

    variable[model->n_variable++] = (em_variable){.name = "log_density"};
    variable[model->n_variable++] = by_topic(record, "topic_share", "rank");
    for (int f = 0; f < record->n_fold_in; f++)
        variable[model->n_variable++] = (em_variable){.name = name[f]};
    if (record->options->store_phi)
        variable[model->n_variable++] = phi_of(record);
    average[model->n_average++] = phi_of(record);
    average[model->n_average++] = by_topic(record, "topic_share", "topic");
    average[model->n_average++] = by_topic(record, "alpha", "topic");
    average[model->n_average++] = (em_variable){.name = "beta"};
    for (int f = 0; f < record->n_fold_in; f++) {
        average[model->n_average++] = (em_variable){.name = name[f]};
        average[model->n_average++] = (em_variable){.name = pooled[f]};
    }
    model->variable = variable;
    model->average = average;
}

void em_topic_record_describe(const em_topic_record *record, int64_t n_document, int64_t n_token,
                              FILE *out)
{
    const em_corpus *corpus = record->corpus;
    const em_held_out *h = record->held_out;

    fprintf(out,
            "# %" PRId64 " documents of %" PRId64 " tokens, %" PRId64 " words; this shard has "
            "%" PRId64 " documents of %" PRId64 " tokens\n",
            corpus->n_document, corpus->n_token, corpus->n_word, n_document, n_token);
    if (h) {
        char doc[EM_HELD_OUT_DOC_SIZE];
        em_held_out_define(record->options->test_scored, record->options->fold_in_alpha, doc);
        fprintf(out, "# %" PRId64 " test documents, %" PRId64 " tokens scored (%s)\n",
                h->n_document, h->n_token, doc);
    }
    if (record->n_fold_in > EM_FOLD_IN_GIBBS)
        fprintf(out, "# and %s\n", EM_HELD_OUT_GIBBS_DOC);
}

bool em_topic_record_stores_phi(const em_topic_record *record)
{
    return record->options->store_phi;
}

void em_topic_record_report(const em_topic_record *record, int64_t chain, const float *phi,
                            double *out)
{
    const int64_t n = record->shape.n_topic;
    double *row = row_of(record, chain);

    *out++ = row[DENSITY];
    memcpy(out, shares(row), (size_t)n * sizeof *out);
    out += n;
    for (int f = 0; f < record->n_fold_in; f++)
        *out++ = row[SCORE + f];
    if (record->options->store_phi)
        for (int64_t k = 0; k < n; k++)
            for (int64_t v = 0; v < record->shape.n_word; v++)
                *out++ = (double)phi[v * record->shape.stride + k];
}

em_status em_topic_record_pool(em_topic_record *record)
{
    const em_held_out *h = record->held_out;
    EM_SCOPED double **of_chain = NULL;
    em_status status = em_agree_first(em_allocate(record->n_chain, sizeof *of_chain, &of_chain), 0);

    for (int f = 0; f < record->n_fold_in; f++)
        record->pooled[f] = NAN;
    for (int f = 0; !status && f < record->n_fold_in && record->row[N_SCORED] > 0; f++) {
        for (int64_t c = 0; c < record->n_chain; c++)
            of_chain[c] = probability_of(record, f, record->first_chain + c);
        status = em_held_out_pool(h, record->n_chain, of_chain, &record->pooled[f]);
    }
    return status;
}

/* Transposes [word][stride] to [topic][word], for as many words at a time as there is memory for.
 * Only one shard does so, because the others write nothing. */
static void report_means(const em_topic_record *record, int64_t chain, double *out)
{
    const em_lda_shape *shape = &record->shape;
    const int64_t most = em_most(em_least(record->n_chunk, SHOWN) / shape->stride, 1);

    for (int64_t v = 0; v < shape->n_word; v += most) {
        const int64_t n = em_least(most, shape->n_word - v);
        gather_means(record, chain, v * shape->stride, n * shape->stride, record->chunk);
        for (int64_t k = 0; k < shape->n_topic && record->own.first == 0; k++)
            for (int64_t i = 0; i < n; i++)
                out[k * shape->n_word + v + i] = record->chunk[i * shape->stride + k];
    }
}

void em_topic_record_report_averages(const em_topic_record *record, int64_t chain, double *out)
{
    const int64_t n = record->shape.n_topic;
    double *row = row_of(record, chain);

    report_means(record, chain, out);
    out += record->shape.n_word * n;
    memcpy(out, mean_shares(record, row), (size_t)(2 * n + 1) * sizeof *out);
    out += 2 * n + 1;
    for (int f = 0; f < record->n_fold_in; f++) {
        *out++ = row[AVERAGED + f];
        *out++ = record->pooled[f];
    }
}

/* ---------------------------------------------------------------- checkpoints */

static void restore_means(const em_topic_record *record, int64_t chain, int64_t first, int64_t n,
                          const double *from)
{
    const int64_t begin = record->own.first * record->shape.stride - first;
    float *mean = mean_of(record, chain);

    for (int64_t i = em_most(begin, 0); i < em_least(n, begin + n_mean(record)); i++)
        mean[i - begin] = (float)from[i];
}

static em_status visit_chunk(em_topic_record *record, const em_visitor *visitor, int64_t first)
{
    const int64_t left = record->n_phi - first, n = left < CHUNK ? left : CHUNK;
    char name[40];

    snprintf(name, sizeof name, first ? "phi_%" PRId64 : "phi", first / CHUNK);
    for (int64_t c = 0; !visitor->restores && c < record->n_chain; c++)
        gather_means(record, record->first_chain + c, first, n, record->chunk + c * n);
    em_status status = visitor->chains(visitor->context, name, n, record->chunk);
    for (int64_t c = 0; !status && visitor->restores && c < record->n_chain; c++)
        restore_means(record, record->first_chain + c, first, n, record->chunk + c * n);
    return status;
}

em_status em_topic_record_visit(em_topic_record *record, const em_visitor *visitor)
{
    static const char *const name[] = {"held_out", "held_out_gibbs"};
    const em_held_out *h = record->held_out;
    em_status status = visitor->chains(visitor->context, "record", record->width, record->row);

    for (int64_t first = 0; !status && first < record->n_phi; first += CHUNK)
        status = visit_chunk(record, visitor, first);
    for (int f = 0; !status && f < record->n_fold_in; f++)
        status = visitor->sharded(visitor->context, name[f], EM_NUMBER_DOUBLE, h->n_score,
                                  h->first_score, h->n_own,
                                  probability_of(record, f, record->first_chain));
    return status;
}

const em_model_prior em_topic_no_prior = {
    .none = "is conditioned on the lengths of its documents, and has no prior of them"};
