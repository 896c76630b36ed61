#include "topics/lda_local.h"

#include "base/memory.h"
#include "math/rng.h"
#include "math/simd/tokens.h"
#include "math/special.h"

#include <math.h>
#include <string.h>

/* Documents are processed in blocks whose counts fit into a processor's cache. */
enum { BLOCK_BYTES = 1 << 19, BLOCK_TOKENS = 1 << 17 };

/* The term of a topic with n tokens in a document comes from a table if n is small. */
enum { TABLE = 64 };

/* A word of a document of the block. */
typedef struct block_word {
    uint32_t slot; /* of its first token */
    int32_t count;
    uint16_t document; /* within the block */
} block_word;

typedef struct term {
    int64_t density, slope;
} term;

struct em_local {
    em_corpus *corpus;
    const em_local_options *options;
    int64_t n_topic, stride;
    int64_t most_entries; /* of a document */
    int64_t *first;       /* [n_local + 1] tokens of this shard before each document */
    int64_t n_document;   /* of a block, at most */
    /* A block: its documents, and their tokens word by word. */
    int64_t *document, *base; /* [n_document]; base: of its slots */
    int32_t *entries;         /* [n_word + 1] of each word, then where they end */
    int64_t entry_capacity, token_capacity, run_capacity, item_capacity;
    block_word *entry, *more; /* by word; those of a word that have more tokens */
    int64_t n_token, n_run, n_item;
    uint16_t *token_document, *topic;
    uint32_t *slot;
    int32_t *run_word, *run_start; /* [n_run], [n_run + 1] */
    int32_t *count;                /* [n_run][stride] */
    uint64_t *item;
    uint32_t *bits;
    float *tokens; /* [n_document][stride] */
    float *prior, *room;
    int32_t *forgotten; /* [stride] counts of sweeps that are discarded */
    term *table;        /* [n_topic][TABLE] at alpha */
    double *alpha;      /* [n_topic]; 0: none so far */
};

/* ---------------------------------------------------------------- set up */

static int64_t padded(int64_t length)
{
    return (length + 3) / 4 * 4;
}

static int64_t tokens_of(em_document of)
{
    int64_t length = 0;

    for (int64_t k = 0; k < of.n; k++)
        length += of.count[k];
    return length;
}

static em_status measure(void *to, int64_t d, em_document of)
{
    em_local *local = to;

    local->first[d + 1] = local->first[d] + tokens_of(of);
    local->most_entries = of.n > local->most_entries ? of.n : local->most_entries;
    return EM_OK;
}

/* Finds the capacities of the largest block: as many documents as fit, and one more document of any
 * length. */
static void find_capacities(em_local *local)
{
    const em_corpus *corpus = local->corpus;
    int64_t tokens = 0, items = 0;

    for (int64_t d = 0; d < corpus->n_local; d++) {
        const int64_t length = em_local_length(local, d);
        tokens = length > tokens ? length : tokens;
        items = padded(length) / 4 > items ? padded(length) / 4 : items;
    }
    local->token_capacity = tokens + BLOCK_TOKENS;
    local->entry_capacity = local->most_entries + BLOCK_TOKENS;
    local->run_capacity =
        corpus->n_word < local->entry_capacity ? corpus->n_word : local->entry_capacity;
    local->item_capacity = (BLOCK_TOKENS / 4 + local->n_document + items + 7) / 8 * 8;
}

static em_status allocate_arrays(em_local *local)
{
    return em_allocate_all(
        EM_ARRAY(local->document, local->n_document), EM_ARRAY(local->base, local->n_document),
        EM_ARRAY(local->entries, local->corpus->n_word + 1),
        EM_ARRAY(local->entry, local->entry_capacity), EM_ARRAY(local->more, local->entry_capacity),
        EM_ARRAY(local->token_document, local->token_capacity),
        EM_ARRAY(local->topic, local->token_capacity), EM_ARRAY(local->slot, local->token_capacity),
        EM_ARRAY(local->run_word, local->run_capacity),
        EM_ARRAY(local->run_start, local->run_capacity + 1),
        EM_ARRAY(local->count, local->run_capacity * local->stride),
        EM_ARRAY(local->item, local->item_capacity),
        EM_ARRAY(local->bits, 4 * local->item_capacity),
        EM_ARRAY(local->tokens, local->n_document * local->stride),
        EM_ARRAY(local->prior, local->stride),
        EM_ARRAY(local->room, em_token_workspace(local->n_topic)),
        EM_ARRAY(local->forgotten, local->stride), EM_ARRAY(local->table, local->n_topic * TABLE),
        EM_ARRAY(local->alpha, local->n_topic));
}

em_status em_local_create(em_corpus *corpus, int64_t n_topic, const em_local_options *options,
                          em_local **out)
{
    em_local *local;
    em_status status = em_allocate(1, sizeof *local, out);

    if (status)
        return status;
    local = *out;
    local->corpus = corpus;
    local->options = options;
    local->n_topic = n_topic;
    local->stride = em_topic_stride(n_topic);
    local->n_document = BLOCK_BYTES / (local->stride * (int64_t)sizeof(float)) + 1;
    status = em_allocate(corpus->n_local + 1, sizeof *local->first, &local->first);
    if (!status)
        status = em_corpus_each(corpus, measure, local);
    if (!status) {
        find_capacities(local);
        status = allocate_arrays(local);
    }
    if (status)
        em_local_destroy(out);
    return status;
}

void em_local_destroy(em_local **out)
{
    em_local *local = *out;

    if (!local)
        return;
    em_release_all(&local->first, &local->document, &local->base, &local->entries, &local->count,
                   &local->entry, &local->more, &local->topic, &local->slot, &local->run_word,
                   &local->item, &local->bits, &local->tokens, &local->prior, &local->room,
                   &local->forgotten, &local->run_start, &local->table, &local->alpha,
                   &local->token_document);
    em_release(out);
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
    int64_t n = 0, slot = 0;

    local->n_token = 0;
    while (k + n < rows->count && n < local->n_document && local->n_token < BLOCK_TOKENS) {
        const int64_t d = em_row(rows, k + n);
        local->document[n] = d;
        local->base[n++] = slot;
        local->n_token += em_local_length(local, d);
        slot += padded(em_local_length(local, d));
    }
    local->n_item = slot / 4;
    return n;
}

/* Sorts the entries of a block by word, and within a word by document. */
static void sort_entries(em_local *local, int64_t n)
{
    const em_corpus *corpus = local->corpus;
    int32_t sum = 0;

    memset(local->entries, 0, (size_t)(corpus->n_word + 1) * sizeof *local->entries);
    for (int64_t i = 0; i < n; i++) {
        const em_document of = em_corpus_fetched(corpus, i);
        for (int64_t k = 0; k < of.n; k++)
            local->entries[of.word[k] + 1]++;
    }
    for (int64_t v = 0; v <= corpus->n_word; v++)
        sum = local->entries[v] += sum;
    for (int64_t i = 0; i < n; i++) {
        const em_document of = em_corpus_fetched(corpus, i);
        uint32_t slot = (uint32_t)local->base[i];
        for (int64_t k = 0; k < of.n; k++) {
            local->entry[local->entries[of.word[k]]++] =
                (block_word){slot, of.count[k], (uint16_t)i};
            slot += (uint32_t)of.count[k];
        }
    }
}

/* Lays out the tokens of the entries first .. end - 1 of one word. First comes the first token of
 * each entry, then the second one of each entry that has two, and so on. So neighbours are of
 * different documents. */
static int32_t lay_word(em_local *local, int32_t first, int32_t end, int32_t token)
{
    const block_word *of = local->entry + first;

    for (int32_t j = 0, n = end - first, n_more; n > 0; j++, n = n_more, of = local->more) {
        n_more = 0;
        for (int32_t i = 0; i < n; i++) {
            const block_word e = of[i];
            local->token_document[token] = e.document;
            local->slot[token++] = e.slot + (uint32_t)j;
            local->more[n_more] = e;
            n_more += e.count > j + 1;
        }
    }
    return token;
}

/* Lays out all tokens. After sort_entries, the entries of word v end at entries[v]. */
static void lay_tokens(em_local *local)
{
    int32_t token = 0;

    local->n_run = 0;
    for (int64_t v = 0; v < local->corpus->n_word; v++) {
        const int32_t first = v > 0 ? local->entries[v - 1] : 0;
        if (local->entries[v] == first)
            continue;
        local->run_word[local->n_run] = (int32_t)v;
        local->run_start[local->n_run++] = token;
        token = lay_word(local, first, local->entries[v], token);
    }
    local->run_start[local->n_run] = token;
}

/* The place of a token's topic among those that a chain keeps, which are in the order of the
 * corpus. */
static uint16_t *kept(const em_local *local, uint16_t *topic, int64_t token)
{
    const int64_t i = local->token_document[token];

    return topic + local->first[local->document[i]] + (local->slot[token] - local->base[i]);
}

static void count_tokens(em_local *local, int64_t n)
{
    memset(local->tokens, 0, (size_t)(n * local->stride) * sizeof *local->tokens);
    for (int64_t t = 0; t < local->n_token; t++)
        local->tokens[local->token_document[t] * local->stride + local->topic[t]] += 1;
}

static void begin(em_local *local, const em_local_query *query, int64_t n)
{
    sort_entries(local, n);
    lay_tokens(local);
    for (int64_t t = 0; t < local->n_token; t++)
        local->topic[t] = query->topic ? *kept(local, query->topic, t) : (uint16_t)local->n_topic;
    count_tokens(local, n);
    memset(local->count, 0, (size_t)(local->n_run * local->stride) * sizeof *local->count);
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

static void draw_bits(em_local *local, uint64_t key, const em_draw *draw, int64_t n, int64_t sweep)
{
    const em_stream stream = {.seed = key,
                              .chain = (uint64_t)draw->chain,
                              .iteration = (uint64_t)sweep,
                              .purpose = EM_RNG_TOKENS};
    int64_t at = 0;

    for (int64_t i = 0; i < n; i++) {
        const int64_t items = padded(em_local_length(local, local->document[i])) / 4;
        const uint64_t number = (uint64_t)(local->corpus->first_document + local->document[i]);
        for (int64_t j = 0; j < items; j++)
            local->item[at++] = number << 24 | (uint64_t)j;
    }
    while (at % 8 != 0)
        local->item[at++] = UINT64_MAX;
    em_item_bits(&stream, at, local->item, local->bits);
}

static void sweep(em_local *local, const em_local_query *query, bool counts)
{
    const em_token_kernels *kernels = em_token_kernels_best();
    em_token_run run = {.bits = local->bits,
                        .n_topic = local->n_topic,
                        .stride = local->stride,
                        .alpha = local->prior,
                        .tokens = local->tokens,
                        .room = local->room};

    for (int64_t r = 0; r < local->n_run; r++) {
        const int32_t first = local->run_start[r];
        run.n = local->run_start[r + 1] - first;
        run.document = local->token_document + first;
        run.slot = local->slot + first;
        run.topic = local->topic + first;
        run.phi = query->phi + local->run_word[r] * local->stride;
        run.count = counts ? local->count + r * local->stride : local->forgotten;
        kernels->dense(&run);
    }
}

/* ---------------------------------------------------------------- priors of each document's own */

static em_local_document document_at(const em_local *local, int64_t place, uint64_t key,
                                     int64_t sweep)
{
    return (em_local_document){.place = place,
                               .number = local->corpus->first_document + local->document[place],
                               .length = em_local_length(local, local->document[place]),
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

static int64_t in_units(double x)
{
    return (int64_t)llround(x / EM_LOCAL_UNIT);
}

/* Fills the table of log Gamma(alpha + n) - log Gamma(alpha), and of alpha times its derivative. */
static void fill_table(em_local *local, const double *alpha)
{
    for (int64_t k = 0; k < local->n_topic; k++) {
        double density = 0, slope = 0;
        if (alpha[k] == local->alpha[k])
            continue;
        local->alpha[k] = alpha[k];
        for (int n = 0; n < TABLE; n++) {
            local->table[k * TABLE + n] = (term){in_units(density), in_units(alpha[k] * slope)};
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
    return (term){in_units(lgamma(sum) - lgamma(alpha)),
                  in_units(alpha * (em_digamma(sum) - em_digamma(alpha)))};
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
        density += in_units(lgamma(total + (double)em_local_length(local, local->document[i])) -
                            lgamma(total));
    *sums->density -= (double)(density * local->options->keep);
}

static void add_counts(const em_local *local, const em_local_sums *sums)
{
    for (int64_t r = 0; r < local->n_run; r++) {
        double *restrict row = sums->count + local->run_word[r] * local->n_topic;
        const int32_t *count = local->count + r * local->stride;
        for (int64_t k = 0; k < local->n_topic; k++)
            row[k] += count[k];
    }
}

static void sample_block(em_local *local, const em_local_query *query, uint64_t key, int64_t n,
                         const em_local_sums *sums)
{
    const em_local_options *options = local->options;

    begin(local, query, n);
    for (int64_t s = 0; s < options->discard + options->keep; s++) {
        const bool counts = s >= options->discard;
        draw_bits(local, key, &query->draw, n, s);
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
    for (int64_t t = 0; query->topic && t < local->n_token; t++)
        *kept(local, query->topic, t) = local->topic[t];
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
        const em_rows block = {.count = n, .index = local->document};
        status = em_corpus_fetch(local->corpus, &block);
        if (!status)
            sample_block(local, query, key, n, sums);
    }
    return status;
}
