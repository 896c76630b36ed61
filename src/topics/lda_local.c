#include "topics/lda_local.h"

#include "math/rng.h"
#include "math/simd/tokens.h"
#include "math/special.h"
#include "topics/lda_tokens.h"

#include <math.h>
#include <string.h>

/* Documents are processed in blocks whose counts fit into a processor's cache. */
enum { BLOCK_BYTES = 1 << 19, BLOCK_TOKENS = 1 << 17 };

/* The term of a topic with n tokens in a document comes from a table if n is small. */
enum { TABLE = 64 };

typedef struct term {
    int64_t density, slope;
} term;

struct em_local {
    em_corpus *corpus;
    const em_local_options *options;
    int64_t n_topic, stride;
    int64_t most_entries; /* of a document */
    int64_t *first;       /* [n_local + 1] tokens of this shard before each document */
    /* A block: n_document documents at most. */
    int64_t n_document;
    int64_t *index, *number; /* [n_document] in this shard, in the corpus */
    int32_t *length;         /* [n_document] */
    em_document *document;   /* [n_document] */
    int64_t *start;          /* [n_word + 2] of em_sort_entries */
    em_token_entry *entry;
    int64_t entry_capacity, run_capacity, item_capacity;
    uint16_t *topic; /* by slot */
    uint16_t *drawn; /* of one word */
    int32_t *count;  /* [words of the block][stride] */
    uint64_t *item;
    uint32_t *bits;
    float *tokens; /* [n_document][stride] */
    float *prior, *room;
    term *table;   /* [n_topic][TABLE] at alpha */
    double *alpha; /* [n_topic]; 0: none so far */
};

/* ---------------------------------------------------------------- set up */

static em_status measure(void *to, int64_t d, em_document of)
{
    em_local *local = to;

    local->first[d + 1] = local->first[d] + em_document_length(of);
    local->most_entries = of.n > local->most_entries ? of.n : local->most_entries;
    return EM_OK;
}

/* Finds the capacities of the largest block: as many documents as fit, and one more document of any
 * length. */
static void find_capacities(em_local *local)
{
    const em_corpus *corpus = local->corpus;
    int64_t tokens = 0;

    for (int64_t d = 0; d < corpus->n_local; d++)
        tokens = em_most(tokens, em_local_length(local, d));
    tokens += BLOCK_TOKENS;
    local->entry_capacity = em_most_entries(local->most_entries + BLOCK_TOKENS, tokens);
    local->run_capacity = em_least(corpus->n_word, local->entry_capacity);
    local->item_capacity = (tokens / 4 + local->n_document + 7) / 8 * 8;
}

static em_status allocate_arrays(em_owner *owner, em_local *local)
{
    const int64_t n = local->n_document, slots = 4 * local->item_capacity;

    return em_own_all(
        owner, EM_ARRAY(local->index, n), EM_ARRAY(local->number, n), EM_ARRAY(local->length, n),
        EM_ARRAY(local->document, n), EM_ARRAY(local->start, local->corpus->n_word + 2),
        EM_ARRAY(local->entry, local->entry_capacity), EM_ARRAY(local->topic, slots),
        EM_ARRAY(local->drawn, slots), EM_ARRAY(local->bits, slots),
        EM_ARRAY(local->item, local->item_capacity),
        EM_ARRAY(local->count, local->run_capacity * local->stride),
        EM_ARRAY(local->tokens, n * local->stride), EM_ARRAY(local->prior, local->stride),
        EM_ARRAY(local->room, em_token_workspace(local->n_topic)),
        EM_ARRAY(local->table, local->n_topic * TABLE), EM_ARRAY(local->alpha, local->n_topic));
}

em_status em_local_create(em_owner *owner, em_corpus *corpus, int64_t n_topic,
                          const em_local_options *options, em_local **out)
{
    em_status status = em_own_all(owner, EM_ARRAY(*out, 1));

    if (status)
        return status;
    em_local *local = *out;
    local->corpus = corpus;
    local->options = options;
    local->n_topic = n_topic;
    local->stride = em_topic_stride(n_topic);
    local->n_document = BLOCK_BYTES / (local->stride * (int64_t)sizeof(float)) + 1;
    status = em_own_all(owner, EM_ARRAY(local->first, corpus->n_local + 1));
    status = status ? status : em_corpus_each(corpus, measure, local);
    if (!status) {
        find_capacities(local);
        status = allocate_arrays(owner, local);
    }
    return status;
}

int64_t em_local_n_token(const em_local *local)
{
    return local->first[local->corpus->n_local];
}

int64_t em_local_most_documents(const em_local *local)
{
    return local->n_document;
}

int64_t em_local_length(const em_local *local, int64_t d)
{
    return local->first[d + 1] - local->first[d];
}

void em_local_start(const em_local *local, uint16_t *topic)
{
    for (int64_t i = 0; i < em_local_n_token(local); i++)
        topic[i] = (uint16_t)local->n_topic;
}

/* ---------------------------------------------------------------- a block */

/* Takes documents from number k of the rows on, until the block is full. Returns how many. */
static int64_t take_documents(em_local *local, const em_rows *rows, int64_t k)
{
    int64_t n = 0;

    for (int64_t tokens = 0; k + n < rows->count && n < local->n_document && tokens < BLOCK_TOKENS;
         n++) {
        const int64_t d = em_row(rows, k + n);
        local->index[n] = d;
        local->number[n] = local->corpus->first_document + d;
        local->length[n] = (int32_t)em_local_length(local, d);
        tokens += local->length[n];
    }
    return n;
}

/* Copies the topics that a chain keeps, which are in the order of the corpus, to the slots of the
 * documents' tokens; `back`: from there. */
static void copy_topics(const em_local *local, int64_t n, bool back, uint16_t *kept)
{
    uint16_t *slot = local->topic;

    for (int64_t i = 0; i < n; i++) {
        uint16_t *of = kept + local->first[local->index[i]];
        memcpy(back ? of : slot, back ? slot : of, (size_t)local->length[i] * sizeof *slot);
        slot += em_padded_length(local->length[i]);
    }
}

static void count_tokens(em_local *local, int64_t n)
{
    const uint16_t *slot = local->topic;

    memset(local->tokens, 0, (size_t)(n * local->stride) * sizeof *local->tokens);
    for (int64_t i = 0; i < n; i++) {
        for (int32_t j = 0; j < local->length[i]; j++)
            local->tokens[i * local->stride + slot[j]] += 1;
        slot += em_padded_length(local->length[i]);
    }
}

static void begin(em_local *local, const em_local_query *query, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        local->document[i] = em_corpus_fetched(local->corpus, i);
    int64_t n_run =
        em_sort_entries(local->corpus->n_word, n, local->document, local->start, local->entry);
    for (int64_t i = 0; !query->topic && i < 4 * local->item_capacity; i++)
        local->topic[i] = (uint16_t)local->n_topic;
    if (query->topic)
        copy_topics(local, n, false, query->topic);
    count_tokens(local, n);
    memset(local->count, 0, (size_t)(n_run * local->stride) * sizeof *local->count);
}

/* ---------------------------------------------------------------- sweeps */

/* A key for each evaluation of a chain. The parts of a counter that are left then count documents
 * and sweeps. */
static uint64_t key_of(const em_draw *draw)
{
    const em_stream stream = {draw->seed, (uint64_t)draw->chain, (uint64_t)draw->iteration,
                              EM_RNG_EVALUATION};

    return em_uniform_below(&stream, 0, UINT64_MAX);
}

static void sweep(em_local *local, const em_local_query *query, bool counts)
{
    const em_token_kernels *kernels = em_token_kernels_best();
    int32_t *count = local->count;
    em_token_run run = {.bits = local->bits,
                        .drawn = local->drawn,
                        .n_topic = local->n_topic,
                        .stride = local->stride,
                        .alpha = local->prior,
                        .tokens = local->tokens,
                        .topic = local->topic,
                        .room = local->room};

    for (int64_t v = 0; v < local->corpus->n_word; v++) {
        int64_t n = 0;
        run.n = local->start[v + 1] - local->start[v];
        if (run.n == 0)
            continue;
        run.entry = local->entry + local->start[v];
        run.phi = query->phi + v * local->stride;
        kernels->dense(&run);
        for (int64_t i = 0; i < run.n; i++)
            n += run.entry[i].count;
        for (int64_t i = 0; counts && i < n; i++)
            count[local->drawn[i]]++;
        count += local->stride;
    }
}

/* ---------------------------------------------------------------- priors of each document's own */

static em_local_document document_at(const em_local *local, int64_t place, uint64_t key,
                                     int64_t sweep)
{
    return (em_local_document){.place = place,
                               .number = local->number[place],
                               .length = local->length[place],
                               .sweep = sweep,
                               .key = key,
                               .tokens = local->tokens + place * local->stride};
}

/* While the tokens of a document are drawn, the prior is included in its counts. */
static void begin_each(em_local *local, const em_local_each *each, int64_t n, uint64_t key,
                       int64_t number)
{
    for (int64_t i = 0; i < n; i++) {
        const em_local_document document = document_at(local, i, key, number);
        float *tokens = local->tokens + i * local->stride;
        each->before(each->self, &document, local->room);
        for (int64_t k = 0; k < local->n_topic; k++)
            tokens[k] += local->room[k];
    }
}

static void end_each(em_local *local, const em_local_each *each, int64_t n, uint64_t key,
                     int64_t number)
{
    count_tokens(local, n);
    for (int64_t i = 0; number >= local->options->discard && i < n; i++) {
        const em_local_document document = document_at(local, i, key, number);
        each->after(each->self, &document);
    }
}

/* ---------------------------------------------------------------- sums */

/* Fills the table of log Gamma(alpha + n) - log Gamma(alpha), and of alpha times its derivative. */
static void fill_table(em_local *local, const double *alpha)
{
    for (int64_t k = 0; k < local->n_topic; k++) {
        double density = 0, slope = 0;
        if (alpha[k] == local->alpha[k])
            continue;
        local->alpha[k] = alpha[k];
        for (int n = 0; n < TABLE; n++) {
            local->table[k * TABLE + n] =
                (term){em_topic_in_units(density), em_topic_in_units(alpha[k] * slope)};
            density += log(alpha[k] + n);
            slope += 1 / (alpha[k] + n);
        }
    }
}

static term term_of(const em_local *local, int64_t k, int64_t n)
{
    const double alpha = local->alpha[k], sum = alpha + (double)n;

    if (n < TABLE)
        return local->table[k * TABLE + n];
    return (term){em_topic_in_units(lgamma(sum) - lgamma(alpha)),
                  em_topic_in_units(alpha * (em_digamma(sum) - em_digamma(alpha)))};
}

/* Adds the sums over the documents of the block after a sweep. */
static void add_documents(const em_local *local, int64_t n, const em_local_sums *sums)
{
    int64_t density = 0;

    for (int64_t i = 0; i < n; i++) {
        const float *tokens = local->tokens + i * local->stride;
        for (int64_t k = 0; k < local->n_topic; k++)
            if (tokens[k] > 0) {
                const term t = term_of(local, k, (int64_t)tokens[k]);
                density += t.density;
                if (sums->slope)
                    sums->slope[k] += (double)t.slope;
            }
    }
    *sums->density += (double)density;
}

/* Adds the terms that depend only on the lengths of documents, once for each sweep that is used. */
static void add_lengths(const em_local *local, const double *alpha, int64_t n,
                        const em_local_sums *sums)
{
    double total = 0;
    int64_t density = 0;

    for (int64_t k = 0; k < local->n_topic; k++)
        total += alpha[k];
    for (int64_t i = 0; i < n; i++)
        density += em_topic_in_units(lgamma(total + (double)local->length[i]) - lgamma(total));
    *sums->density -= (double)(density * local->options->keep);
}

static void add_counts(const em_local *local, const em_local_sums *sums)
{
    const int32_t *count = local->count;

    for (int64_t v = 0; v < local->corpus->n_word; v++) {
        double *restrict row = sums->count + v * local->n_topic;
        if (local->start[v] == local->start[v + 1])
            continue;
        for (int64_t k = 0; k < local->n_topic; k++)
            row[k] += count[k];
        count += local->stride;
    }
}

static void sample_block(em_local *local, const em_local_query *query, uint64_t key, int64_t n,
                         const em_local_sums *sums)
{
    const em_local_options *options = local->options;
    em_stream stream = {
        .seed = key, .chain = (uint64_t)query->draw.chain, .purpose = EM_RNG_TOKENS};

    begin(local, query, n);
    for (int64_t s = 0; s < options->discard + options->keep; s++) {
        const bool counts = s >= options->discard;
        stream.iteration = (uint64_t)s;
        em_draw_token_bits(&stream, n, local->number, local->length, local->item, local->bits);
        if (query->each)
            begin_each(local, query->each, n, key, s);
        sweep(local, query, counts);
        if (query->each)
            end_each(local, query->each, n, key, s);
        else if (counts)
            add_documents(local, n, sums);
    }
    if (query->alpha)
        add_lengths(local, query->alpha, n, sums);
    add_counts(local, sums);
    if (query->topic)
        copy_topics(local, n, true, query->topic);
}

em_status em_local_sample(em_local *local, const em_local_query *query, const em_local_sums *sums)
{
    const uint64_t key = key_of(&query->draw);
    em_status status = EM_OK;
    int64_t n;

    if (query->alpha)
        fill_table(local, query->alpha);
    for (int64_t k = 0; k < local->n_topic; k++)
        local->prior[k] = query->alpha ? (float)query->alpha[k] : 0;
    for (int64_t k = 0; !status && k < query->rows.count; k += n) {
        n = take_documents(local, &query->rows, k);
        const em_rows block = {.count = n, .index = local->index};
        status = em_corpus_fetch(local->corpus, &block);
        if (!status)
            sample_block(local, query, key, n, sums);
    }
    return status;
}
