#include "model/topic_record.h"

#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of a chain, in a row: these, shares in order of size, mean shares, alpha, beta. */
enum { DENSITY, SCORE, N_AVERAGE, N_SCORED, AVERAGED, HEAD };

struct em_topic_record {
    em_topic_record_options options;
    const em_corpus *corpus;
    const em_held_out *held_out;
    int64_t n_phi, width;
    double *row;         /* [n_chain][width] */
    double *phi;         /* [n_chain][n_word][stride] means */
    double *probability; /* [n_chain][n_own] of held-out entries, averaged */
};

em_status em_topic_record_create(const em_topic_record_options *options, const em_corpus *corpus,
                                 const em_held_out *held_out, em_topic_record **out)
{
    em_topic_record *record;
    em_status status = em_allocate(1, sizeof *record, out);

    if (status)
        return status;
    record = *out;
    *record = (em_topic_record){.options = *options, .corpus = corpus, .held_out = held_out};
    record->n_phi = options->shape.n_word * options->shape.stride;
    record->width = HEAD + 3 * options->shape.n_topic + 1;
    status = em_allocate(options->n_chain * record->width, sizeof(double), &record->row);
    if (!status)
        status = em_allocate(options->n_chain * record->n_phi, sizeof(double), &record->phi);
    if (!status)
        status = em_allocate(options->n_chain * (held_out ? held_out->n_own : 0), sizeof(double),
                             &record->probability);
    for (int64_t c = 0; !status && c < options->n_chain; c++)
        record->row[c * record->width + SCORE] = record->row[c * record->width + AVERAGED] = NAN;
    if (status)
        em_topic_record_destroy(out);
    return status;
}

void em_topic_record_destroy(em_topic_record **record)
{
    if (*record) {
        em_release(&(*record)->row);
        em_release(&(*record)->phi);
        em_release(&(*record)->probability);
    }
    em_release(record);
}

static double *row_of(const em_topic_record *record, int64_t chain)
{
    return record->row + (chain - record->options.first_chain) * record->width;
}

static double *shares(const em_topic_record *record, double *row)
{
    (void)record;
    return row + HEAD;
}

static double *mean_shares(const em_topic_record *record, double *row)
{
    return row + HEAD + record->options.shape.n_topic;
}

/* alpha, then beta */
static double *hyper(const em_topic_record *record, double *row)
{
    return row + HEAD + 2 * record->options.shape.n_topic;
}

/* ---------------------------------------------------------------- an iteration */

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x < y) - (x > y);
}

static void take_shares(const em_topic_record *record, const double *count, bool averages,
                        double *row)
{
    const int64_t n = record->options.shape.n_topic;
    double all = 0, *share = shares(record, row), *mean = mean_shares(record, row);

    for (int64_t k = 0; k < n; k++)
        all += count[k];
    for (int64_t k = 0; k < n; k++) {
        share[k] = all > 0 ? count[k] / all : 1 / (double)n;
        if (averages)
            mean[k] += (share[k] - mean[k]) / row[N_AVERAGE];
    }
    qsort(share, (size_t)n, sizeof *share, descending);
}

static bool scores(const em_topic_record *record, const em_update *after, const double *row)
{
    return record->held_out && ((after->number + 1) % record->options.test_every == 0 ||
                                (!after->warmup && row[N_SCORED] == 0));
}

bool em_topic_record_wants_phi(const em_topic_record *record, const em_update *after)
{
    bool wants = !after->warmup;

    for (int64_t c = 0; c < after->n_chain; c++)
        wants |= scores(record, after, row_of(record, after->chain[c]));
    return wants;
}

static em_status score(em_topic_record *record, const em_update *after, const em_topic_look *look,
                       double *row)
{
    const em_held_out *h = record->held_out;
    double *average = record->probability + (look->chain - record->options.first_chain) * h->n_own;
    int64_t sums[2];
    em_status status;

    const em_held_out_law law = {.phi = look->phi};
    sums[0] = em_held_out_score(h, &record->options.shape, &law, (int64_t)row[N_SCORED], average,
                                &sums[1]);
    status = after->shards->sum(after->shards->context, EM_OK, 2, sums);
    row[SCORE] = em_held_out_perplexity(h, sums[0]);
    if (status || after->warmup)
        return status;
    row[N_SCORED]++;
    row[AVERAGED] = em_held_out_perplexity(h, sums[1]);
    return EM_OK;
}

em_status em_topic_record_take(em_topic_record *record, const em_update *after,
                               const em_topic_look *look)
{
    const bool averages = !after->warmup;
    const int64_t n = record->options.shape.n_topic;
    double *row = row_of(record, look->chain);
    double *mean = record->phi + (look->chain - record->options.first_chain) * record->n_phi;
    const bool is_due = scores(record, after, row);

    row[DENSITY] = look->log_density;
    row[N_AVERAGE] += averages;
    take_shares(record, look->count, averages, row);
    memcpy(hyper(record, row), look->alpha, (size_t)n * sizeof *row);
    hyper(record, row)[n] = look->beta;
    for (int64_t i = 0; averages && i < record->n_phi; i++)
        mean[i] += (look->phi[i] - mean[i]) / row[N_AVERAGE];
    return is_due ? score(record, after, look, row) : EM_OK;
}

/* ---------------------------------------------------------------- what comes out */

static em_variable by_topic(const em_topic_record *record, const char *name, const char *axis)
{
    return (em_variable){
        .name = name, .n_axes = 1, .shape = {record->options.shape.n_topic}, .axis = {axis}};
}

static em_variable by_word(const em_topic_record *record, const char *name)
{
    return (em_variable){.name = name,
                         .storage = EM_STORE_SINGLE,
                         .unwatched = true,
                         .n_axes = 2,
                         .shape = {record->options.shape.n_topic, record->options.shape.n_word},
                         .axis = {"topic", "word"},
                         .label = {NULL, (const char *const *)record->corpus->name}};
}

void em_topic_record_declare(const em_topic_record *record, em_model *model, em_variable *variable,
                             em_variable *average)
{
    variable[model->n_variable++] = (em_variable){.name = "log_density"};
    variable[model->n_variable++] = by_topic(record, "topic_share", "rank");
    if (record->held_out)
        variable[model->n_variable++] = (em_variable){.name = "perplexity"};
    if (record->options.store_phi)
        variable[model->n_variable++] = by_word(record, "phi");
    average[model->n_average++] = by_word(record, "phi");
    average[model->n_average++] = by_topic(record, "topic_share", "topic");
    average[model->n_average++] = by_topic(record, "alpha", "topic");
    average[model->n_average++] = (em_variable){.name = "beta"};
    if (record->held_out)
        average[model->n_average++] = (em_variable){.name = "perplexity"};
    model->variable = variable;
    model->average = average;
}

/* [word][stride] as [topic][word]. */
static double *transpose(const em_lda_shape *shape, const float *phi, double *out)
{
    for (int64_t k = 0; k < shape->n_topic; k++)
        for (int64_t v = 0; v < shape->n_word; v++)
            *out++ = (double)phi[v * shape->stride + k];
    return out;
}

bool em_topic_record_stores_phi(const em_topic_record *record)
{
    return record->options.store_phi;
}

double *em_topic_record_report(const em_topic_record *record, int64_t chain, const float *phi,
                               double *out)
{
    const int64_t n = record->options.shape.n_topic;
    double *row = row_of(record, chain);

    *out++ = row[DENSITY];
    memcpy(out, shares(record, row), (size_t)n * sizeof *out);
    out += n;
    if (record->held_out)
        *out++ = row[SCORE];
    return record->options.store_phi ? transpose(&record->options.shape, phi, out) : out;
}

void em_topic_record_report_averages(const em_topic_record *record, int64_t chain, double *out)
{
    const em_lda_shape *shape = &record->options.shape;
    const double *phi = record->phi + (chain - record->options.first_chain) * record->n_phi;
    double *row = row_of(record, chain);

    for (int64_t k = 0; k < shape->n_topic; k++)
        for (int64_t v = 0; v < shape->n_word; v++)
            *out++ = phi[v * shape->stride + k];
    memcpy(out, mean_shares(record, row), (size_t)(2 * shape->n_topic + 1) * sizeof *out);
    if (record->held_out)
        out[2 * shape->n_topic + 1] = row[AVERAGED];
}

em_status em_topic_record_visit(em_topic_record *record, const em_visitor *visitor)
{
    const em_held_out *h = record->held_out;
    em_status status = visitor->chains(visitor->context, "topics", record->width, record->row);

    if (!status)
        status = visitor->chains(visitor->context, "phi", record->n_phi, record->phi);
    if (!status && h)
        status = visitor->dealt(visitor->context, "held_out", EM_NUMBER_DOUBLE, h->n_score,
                                h->first_score, h->n_own, record->probability);
    return status;
}

em_status em_topic_record_read_test(const em_corpus_options *options, const em_lda_shape *shape,
                                    const em_model_context *context, uint64_t *hash,
                                    em_held_out **out)
{
    em_corpus *test = NULL;
    em_status status = em_corpus_read(options, shape->n_word, 0, 0, 1, &test);

    if (!status)
        status = em_held_out_create(test, NULL, shape, context->shard, context->n_shard, out);
    if (!status && (*out)->n_token == 0)
        status = em_fail(EM_EDATA,
                         "%s:1: found %" PRId64 " words, of which none is scored, expected more",
                         options->data, test->n_token);
    if (!status)
        *hash ^= test->hash;
    em_corpus_destroy(&test);
    return status;
}
