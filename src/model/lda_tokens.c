#include "model/lda_tokens.h"

#include "base/memory.h"
#include "data/array.h"
#include "math/digamma.h"
#include "math/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Counts of a block's documents stay in a second-level cache, beside the rows of words. */
enum { BLOCK_BYTES = 1 << 19, BLOCK_TOKENS = 1 << 17, MOST_DOCUMENTS = 65536 };

/* From so many topics on it pays to look at a document's own ones alone. */
enum { SPARSE_TOPICS = 192 };

/* The lowest level has about so many tokens, and documents for each topic. */
enum { FIRST_TOKENS = 1 << 15, FIRST_DOCUMENTS = 4, MOST_LEVELS = 9 };

/* ---------------------------------------------------------------- layout */

/* An entry of the corpus as it is sorted. */
typedef struct entry {
    int32_t word, count;
    uint32_t slot;
    uint16_t document;
} entry;

static int by_word(const void *a, const void *b)
{
    const entry *x = a, *y = b;

    if (x->word != y->word)
        return x->word < y->word ? -1 : 1;
    return x->slot < y->slot ? -1 : 1;
}

static int level_of(const em_tokens *tokens, int64_t number)
{
    int level = tokens->n_level - 1;

    while (level > 0 && number % 2 == 0) {
        number /= 2;
        level--;
    }
    return level;
}

static void choose_levels(em_tokens *tokens, const em_corpus *corpus)
{
    int64_t n_token = corpus->n_token / 2, n_document = corpus->n_document / 2;

    tokens->n_level = 1;
    for (; n_token >= FIRST_TOKENS && n_document >= FIRST_DOCUMENTS * tokens->n_topic &&
           tokens->n_level < MOST_LEVELS;
         n_token /= 2, n_document /= 2)
        tokens->n_level++;
}

static int64_t length_of(const em_corpus *corpus, int64_t d)
{
    int64_t length = 0;

    for (int64_t k = corpus->start[d]; k < corpus->start[d + 1]; k++)
        length += corpus->count[k];
    return length;
}

/* What a document takes up in a block. */
static int64_t bytes_of(const em_tokens *tokens, int64_t length)
{
    const int64_t own = (length < tokens->n_topic ? length : tokens->n_topic) + EM_TOPIC_LANES;

    return tokens->sparse ? own * 8 : tokens->stride * 4;
}

/* Slots of a document begin with a block of the generator. */
static int64_t padded(int64_t length)
{
    return (length + 3) / 4 * 4;
}

/* Order of documents: by level, then as in the corpus. source[i] is the corpus's local number. */
static void order_documents(em_tokens *tokens, const em_corpus *corpus, int64_t *source)
{
    int64_t n = 0;

    for (int level = 0; level < tokens->n_level; level++) {
        int64_t before = 0;
        for (int64_t d = 0; d < corpus->n_local; d++) {
            const int64_t length = length_of(corpus, d);
            if (level_of(tokens, corpus->first_document + d) == level) {
                source[n] = d;
                tokens->number[n] = corpus->first_document + d;
                tokens->first[n] = before;
                tokens->length[n++] = (int32_t)length;
            }
            before += length;
        }
        tokens->n_token = before;
    }
}

/* Whole documents of one level, until the block is full. */
static em_status cut_blocks(em_tokens *tokens)
{
    int64_t capacity = 0, bytes = 0, token = 0;
    em_token_block *block = NULL;

    for (int64_t d = 0; d < tokens->n_document; d++) {
        const int level = level_of(tokens, tokens->number[d]);
        const int64_t length = tokens->length[d];
        if (!block || block->level != level || bytes > BLOCK_BYTES ||
            block->n_token > BLOCK_TOKENS || block->n_document == MOST_DOCUMENTS) {
            em_status status = em_array_reserve(&tokens->block, &capacity, tokens->n_block,
                                                tokens->n_block + 1, sizeof *tokens->block);
            if (status)
                return status;
            block = &tokens->block[tokens->n_block++];
            *block = (em_token_block){.first_document = d, .first_token = token, .level = level};
            bytes = 0;
        }
        block->n_document++;
        block->n_token += length;
        bytes += bytes_of(tokens, length);
        token += length;
    }
    return EM_OK;
}

/* The entries of a block in the order of words. Returns how many. */
static int64_t sort_entries(const em_tokens *tokens, const em_token_block *block,
                            const em_corpus *corpus, const int64_t *source, entry *out)
{
    int64_t n = 0, slot = 0;

    for (int64_t i = 0; i < block->n_document; i++) {
        const int64_t d = source[block->first_document + i];
        int64_t at = slot;
        for (int64_t k = corpus->start[d]; k < corpus->start[d + 1]; k++) {
            out[n++] = (entry){corpus->word[k], corpus->count[k], (uint32_t)at, (uint16_t)i};
            at += corpus->count[k];
        }
        slot += padded(tokens->length[block->first_document + i]);
    }
    qsort(out, (size_t)n, sizeof *out, by_word);
    return n;
}

/* The tokens of one word: the first of each entry, then the second of each that has two, ... */
static int64_t lay_word(em_tokens *tokens, const entry *of, int64_t n, int64_t token)
{
    bool more = true;

    for (int32_t j = 0; more; j++) {
        more = false;
        for (int64_t i = 0; i < n; i++)
            if (of[i].count > j) {
                tokens->document[token] = of[i].document;
                tokens->slot[token++] = of[i].slot + (uint32_t)j;
                more = more || of[i].count > j + 1;
            }
    }
    return token;
}

static em_status lay_block(em_tokens *tokens, em_token_block *block, const entry *of, int64_t n,
                           int64_t *n_run, int64_t capacity[2])
{
    int64_t token = block->first_token;
    em_status status = EM_OK;

    block->first_run = *n_run;
    for (int64_t i = 0, end; !status && i < n; i = end) {
        for (end = i + 1; end < n && of[end].word == of[i].word;)
            end++;
        status = em_array_reserve(&tokens->run_word, &capacity[0], *n_run, *n_run + 1,
                                  sizeof *tokens->run_word);
        if (!status)
            status = em_array_reserve(&tokens->run_start, &capacity[1], *n_run + 1, *n_run + 2,
                                      sizeof *tokens->run_start);
        if (status)
            break;
        tokens->run_word[*n_run] = of[i].word;
        tokens->run_start[(*n_run)++] = token;
        token = lay_word(tokens, of + i, end - i, token);
        tokens->run_start[*n_run] = token;
    }
    block->n_run = *n_run - block->first_run;
    return status;
}

static em_status lay_tokens(em_tokens *tokens, const em_corpus *corpus, const int64_t *source)
{
    int64_t n_run = 0, capacity[2] = {0, 0}, most = 0;
    entry *of = NULL;
    em_status status;

    for (int64_t b = 0; b < tokens->n_block; b++) {
        const em_token_block *block = &tokens->block[b];
        int64_t n = 0;
        for (int64_t i = 0; i < block->n_document; i++) {
            const int64_t d = source[block->first_document + i];
            n += corpus->start[d + 1] - corpus->start[d];
        }
        most = n > most ? n : most;
    }
    status = em_allocate(most, sizeof *of, &of);
    if (!status)
        status = em_array_reserve(&tokens->run_start, &capacity[1], 0, 1, sizeof(int64_t));
    for (int64_t b = 0; !status && b < tokens->n_block; b++) {
        const int64_t n = sort_entries(tokens, &tokens->block[b], corpus, source, of);
        status = lay_block(tokens, &tokens->block[b], of, n, &n_run, capacity);
    }
    em_release(&of);
    return status;
}

/* ---------------------------------------------------------------- room */

/* Numbers of the generator's blocks that a block's documents need. */
static int64_t n_item(const em_tokens *tokens, const em_token_block *block)
{
    int64_t n = 0;

    for (int64_t i = 0; i < block->n_document; i++)
        n += padded(tokens->length[block->first_document + i]) / 4;
    return n;
}

static int64_t list_room(const em_tokens *tokens, int64_t length)
{
    const int64_t most = length < tokens->n_topic ? length : tokens->n_topic;

    return (most + EM_TOPIC_LANES) / EM_TOPIC_LANES * EM_TOPIC_LANES;
}

static em_status make_room(em_tokens *tokens)
{
    int64_t items = 0, documents = 0, entries = 0;
    em_status status;

    for (int64_t b = 0; b < tokens->n_block; b++) {
        const em_token_block *block = &tokens->block[b];
        const int64_t n = n_item(tokens, block);
        int64_t sum = 0;
        for (int64_t i = 0; i < block->n_document; i++)
            sum += list_room(tokens, tokens->length[block->first_document + i]);
        items = n > items ? n : items;
        documents = block->n_document > documents ? block->n_document : documents;
        entries = sum > entries ? sum : entries;
    }
    items = ((items > documents ? items : documents) + 7) / 8 * 8;
    status = em_allocate(items, sizeof *tokens->item, &tokens->item);
    if (!status)
        status = em_allocate(4 * items, sizeof *tokens->bits, &tokens->bits);
    if (!status)
        status = em_allocate(tokens->n_topic, sizeof *tokens->table, &tokens->table);
    if (!status)
        status = em_allocate(tokens->n_topic, sizeof(double), &tokens->table_alpha);
    if (!status)
        status = em_allocate(tokens->stride, sizeof *tokens->prior, &tokens->prior);
    if (!status)
        status = em_allocate(2 * tokens->stride + 32, sizeof *tokens->room, &tokens->room);
    if (!status && !tokens->sparse)
        status = em_allocate(documents * tokens->stride, sizeof *tokens->tokens, &tokens->tokens);
    if (!status && tokens->sparse)
        status = em_allocate(documents, sizeof *tokens->list, &tokens->list);
    if (!status && tokens->sparse)
        status = em_allocate(entries, sizeof *tokens->list_topic, &tokens->list_topic);
    if (!status && tokens->sparse)
        status = em_allocate(entries, sizeof *tokens->list_count, &tokens->list_count);
    return status;
}

em_status em_tokens_create(const em_corpus *corpus, int64_t n_topic, int sparse, em_tokens **out)
{
    em_tokens *tokens;
    int64_t *source = NULL;
    em_status status = em_allocate(1, sizeof *tokens, out);

    if (status)
        return status;
    tokens = *out;
    tokens->n_topic = n_topic;
    tokens->stride = em_topic_stride(n_topic);
    tokens->n_word = corpus->n_word;
    tokens->n_document = corpus->n_local;
    tokens->n_all = corpus->n_token;
    tokens->first_token = corpus->first_token;
    tokens->sparse = sparse < 0 ? n_topic >= SPARSE_TOPICS : sparse > 0;
    choose_levels(tokens, corpus);
    status = em_allocate(corpus->n_local, sizeof *source, &source);
    if (!status)
        status = em_allocate(corpus->n_local, sizeof *tokens->number, &tokens->number);
    if (!status)
        status = em_allocate(corpus->n_local, sizeof *tokens->length, &tokens->length);
    if (!status)
        status = em_allocate(corpus->n_local, sizeof *tokens->first, &tokens->first);
    if (!status) {
        order_documents(tokens, corpus, source);
        status = cut_blocks(tokens);
    }
    if (!status)
        status = em_allocate(tokens->n_token, sizeof *tokens->document, &tokens->document);
    if (!status)
        status = em_allocate(tokens->n_token, sizeof *tokens->slot, &tokens->slot);
    if (!status)
        status = lay_tokens(tokens, corpus, source);
    if (!status)
        status = make_room(tokens);
    em_release(&source);
    if (status)
        em_tokens_destroy(out);
    return status;
}

void em_tokens_destroy(em_tokens **out)
{
    em_tokens *tokens = *out;

    if (!tokens)
        return;
    void *const array[] = {&tokens->block,      &tokens->number,     &tokens->length,
                           &tokens->run_word,   &tokens->run_start,  &tokens->document,
                           &tokens->slot,       &tokens->tokens,     &tokens->list,
                           &tokens->list_topic, &tokens->list_count, &tokens->item,
                           &tokens->bits,       &tokens->table,      &tokens->table_alpha,
                           &tokens->first,      &tokens->prior,      &tokens->room};
    for (size_t i = 0; i < sizeof array / sizeof *array; i++)
        em_release(array[i]);
    em_release(out);
}

/* ---------------------------------------------------------------- a sweep */

/* Random bits of all documents of a block, counted by document, into their slots. */
static void draw_bits(em_tokens *tokens, const em_token_block *block, const em_sweep *sweep)
{
    const em_stream stream = {.seed = sweep->seed,
                              .chain = (uint64_t)sweep->chain,
                              .iteration = (uint64_t)sweep->iteration,
                              .purpose = EM_RNG_TOKENS};
    int64_t n = 0;

    for (int64_t i = 0; i < block->n_document; i++) {
        const uint64_t number = (uint64_t)tokens->number[block->first_document + i];
        const int64_t items = padded(tokens->length[block->first_document + i]) / 4;
        for (int64_t j = 0; j < items; j++)
            tokens->item[n++] = number << 24 | (uint64_t)j;
    }
    em_item_bits(&stream, (n + 7) / 8 * 8, tokens->item, tokens->bits);
}

static void count_dense(em_tokens *tokens, const em_token_block *block, const uint16_t *topic)
{
    memset(tokens->tokens, 0,
           (size_t)(block->n_document * tokens->stride) * sizeof *tokens->tokens);
    for (int64_t i = block->first_token; i < block->first_token + block->n_token; i++)
        tokens->tokens[tokens->document[i] * tokens->stride + topic[i]] += 1;
}

static void clear_lists(em_tokens *tokens, const em_token_block *block)
{
    int64_t at = 0;

    for (int64_t i = 0; i < block->n_document; i++) {
        const int64_t room = list_room(tokens, tokens->length[block->first_document + i]);
        tokens->list[i] = (em_topic_list){0, tokens->list_topic + at, tokens->list_count + at};
        at += room;
    }
    for (int64_t i = 0; i < at; i++)
        tokens->list_topic[i] = (int32_t)tokens->n_topic;
    memset(tokens->list_count, 0, (size_t)at * sizeof *tokens->list_count);
}

/* In the order of the tokens, which is a document's own. */
static void count_sparse(em_tokens *tokens, const em_token_block *block, const uint16_t *topic)
{
    clear_lists(tokens, block);
    for (int64_t i = block->first_token; i < block->first_token + block->n_token; i++) {
        em_topic_list *list = &tokens->list[tokens->document[i]];
        int32_t at = 0;
        if (topic[i] == tokens->n_topic)
            continue;
        while (at < list->n && list->topic[at] != topic[i])
            at++;
        list->topic[at] = topic[i];
        list->count[at] += 1;
        list->n += at == list->n;
    }
}

static void sweep_runs(em_tokens *tokens, const em_token_block *block, const em_sweep *sweep,
                       uint16_t *topic)
{
    const em_token_kernels *kernels = em_token_kernels_best();
    em_token_run run = {.bits = tokens->bits,
                        .n_topic = tokens->n_topic,
                        .stride = tokens->stride,
                        .prior = tokens->prior,
                        .tokens = tokens->tokens,
                        .list = tokens->list,
                        .room = tokens->room};

    for (int64_t r = block->first_run; r < block->first_run + block->n_run; r++) {
        const int64_t row = tokens->run_word[r] * tokens->stride, first = tokens->run_start[r];
        run.n = tokens->run_start[r + 1] - first;
        run.document = tokens->document + first;
        run.slot = tokens->slot + first;
        run.topic = topic + first;
        run.phi = sweep->phi + row;
        run.count = sweep->count + row;
        for (int64_t k = 0; k < tokens->n_topic; k++)
            tokens->prior[k] = (float)sweep->alpha[k] * run.phi[k];
        (tokens->sparse ? kernels->sparse : kernels->dense)(&run);
    }
}

/* ---------------------------------------------------------------- sums over documents */

static int64_t in_units(double x)
{
    return (int64_t)llround(x / EM_LDA_UNIT);
}

static int64_t density_of(double alpha, int64_t n)
{
    return in_units(lgamma(alpha + (double)n) - lgamma(alpha));
}

static int64_t slope_of(double alpha, int64_t n)
{
    return in_units(em_digamma(alpha + (double)n) - em_digamma(alpha));
}

/* What a topic adds for a document that has it n times: looked up where n is small. */
static void fill_table(em_tokens *tokens, const double *alpha)
{
    for (int64_t k = 0; k < tokens->n_topic; k++) {
        if (alpha[k] == tokens->table_alpha[k])
            continue;
        tokens->table_alpha[k] = alpha[k];
        for (int64_t n = 0; n < EM_LDA_TABLE; n++) {
            tokens->table[k][n][0] = density_of(alpha[k], n);
            tokens->table[k][n][1] = slope_of(alpha[k], n);
        }
    }
}

static void add_terms(const em_tokens *tokens, const em_sweep *sweep, int64_t k, int64_t n)
{
    const bool known = n < EM_LDA_TABLE;
    const double alpha = sweep->alpha[k];

    sweep->sums[EM_LDA_DENSITY] += known ? tokens->table[k][n][0] : density_of(alpha, n);
    sweep->sums[EM_LDA_SLOPES + k] += known ? tokens->table[k][n][1] : slope_of(alpha, n);
}

static void sum_block(const em_tokens *tokens, const em_token_block *block, const em_sweep *sweep,
                      double total)
{
    for (int64_t i = 0; i < block->n_document; i++) {
        const int64_t length = tokens->length[block->first_document + i];
        sweep->sums[EM_LDA_DENSITY] -= density_of(total, length);
        sweep->sums[EM_LDA_TOTAL_SLOPE] += slope_of(total, length);
        if (tokens->sparse) {
            const em_topic_list *list = &tokens->list[i];
            for (int32_t j = 0; j < list->n; j++)
                add_terms(tokens, sweep, list->topic[j], (int64_t)list->count[j]);
        } else {
            const float *n = tokens->tokens + i * tokens->stride;
            for (int64_t k = 0; k < tokens->n_topic; k++)
                if (n[k] > 0)
                    add_terms(tokens, sweep, k, (int64_t)n[k]);
        }
    }
}

void em_tokens_sweep(em_tokens *tokens, const em_sweep *sweep, uint16_t *topic)
{
    double total = 0;

    memset(sweep->count, 0, (size_t)(tokens->n_word * tokens->stride) * sizeof *sweep->count);
    if (sweep->sums) {
        memset(sweep->sums, 0, (size_t)(EM_LDA_SLOPES + tokens->n_topic) * sizeof *sweep->sums);
        fill_table(tokens, sweep->alpha);
    }
    for (int64_t k = 0; k < tokens->n_topic; k++)
        total += sweep->alpha[k];
    for (int64_t b = 0; b < tokens->n_block && tokens->block[b].level <= sweep->level; b++) {
        const em_token_block *block = &tokens->block[b];
        draw_bits(tokens, block, sweep);
        (tokens->sparse ? count_sparse : count_dense)(tokens, block, topic);
        sweep_runs(tokens, block, sweep, topic);
        if (sweep->sums)
            sum_block(tokens, block, sweep, total);
    }
}

void em_tokens_start(const em_tokens *tokens, uint64_t seed, int64_t chain, uint16_t *topic)
{
    const em_stream stream = {.seed = seed, .chain = (uint64_t)chain, .purpose = EM_RNG_START};

    for (int64_t b = 0; b < tokens->n_block; b++) {
        const em_token_block *block = &tokens->block[b];
        for (int64_t i = block->first_token; i < block->first_token + block->n_token; i++) {
            const int64_t d = block->first_document + tokens->document[i];
            topic[i] = (uint16_t)tokens->n_topic;
            if (block->level == 0)
                topic[i] = (uint16_t)em_uniform_below(&stream, (uint64_t)tokens->number[d],
                                                      (uint64_t)tokens->n_topic);
        }
    }
}

/* ---------------------------------------------------------------- what is saved */

/* Where the slots of each document of a block begin: into tokens->item, which has room. */
static void find_slots(em_tokens *tokens, const em_token_block *block)
{
    uint64_t slot = 0;

    for (int64_t i = 0; i < block->n_document; i++) {
        tokens->item[i] = slot;
        slot += (uint64_t)padded(tokens->length[block->first_document + i]);
    }
}

/* Among this shard's tokens in the order of the corpus: token i of a block, whose slots were found.
 */
static int64_t place_of(const em_tokens *tokens, const em_token_block *block, int64_t i)
{
    const int64_t d = tokens->document[i];

    return tokens->first[block->first_document + d] + (int64_t)(tokens->slot[i] - tokens->item[d]);
}

void em_tokens_save(em_tokens *tokens, const uint16_t *topic, uint16_t *ordered)
{
    for (int64_t b = 0; b < tokens->n_block; b++) {
        const em_token_block *block = &tokens->block[b];
        find_slots(tokens, block);
        for (int64_t i = block->first_token; i < block->first_token + block->n_token; i++)
            ordered[place_of(tokens, block, i)] = topic[i];
    }
}

void em_tokens_restore(em_tokens *tokens, const uint16_t *ordered, uint16_t *topic)
{
    for (int64_t b = 0; b < tokens->n_block; b++) {
        const em_token_block *block = &tokens->block[b];
        find_slots(tokens, block);
        for (int64_t i = block->first_token; i < block->first_token + block->n_token; i++)
            topic[i] = ordered[place_of(tokens, block, i)];
    }
}

void em_tokens_count(const em_tokens *tokens, const uint16_t *topic, int32_t *count)
{
    memset(count, 0, (size_t)(tokens->n_word * tokens->stride) * sizeof *count);
    for (int64_t b = 0; b < tokens->n_block; b++) {
        const em_token_block *block = &tokens->block[b];
        for (int64_t r = block->first_run; r < block->first_run + block->n_run; r++)
            for (int64_t i = tokens->run_start[r]; i < tokens->run_start[r + 1]; i++)
                if (topic[i] < tokens->n_topic)
                    count[tokens->run_word[r] * tokens->stride + topic[i]]++;
    }
}
