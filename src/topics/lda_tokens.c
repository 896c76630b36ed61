#include "topics/lda_tokens.h"

#include "math/rng.h"
#include "math/special.h"
#include "topics/lda_exchange.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- a sweep */

/* Draws the random bits of all documents of a block, counted by document, and writes them to the
 * slots of their tokens. */
static void draw_bits(em_tokens *tokens, const em_token_block *block, const em_sweep *sweep)
{
    const em_stream stream = {.seed = sweep->seed,
                              .chain = (uint64_t)sweep->chain,
                              .iteration = (uint64_t)sweep->iteration,
                              .purpose = EM_RNG_TOKENS};
    int64_t n = 0;

    for (int64_t i = 0; i < block->n_document; i++) {
        const uint64_t number = (uint64_t)tokens->number[block->first_document + i];
        const int64_t items = em_padded_length(tokens->length[block->first_document + i]) / 4;
        for (int64_t j = 0; j < items; j++)
            tokens->item[n++] = number << 24 | (uint64_t)j;
    }
    em_item_bits(&stream, (n + 7) / 8 * 8, tokens->item, tokens->bits);
}

static void count_dense(em_tokens *tokens, const em_block_view *view)
{
    memset(tokens->tokens, 0,
           (size_t)(view->block->n_document * tokens->stride) * sizeof *tokens->tokens);
    for (int64_t i = 0; i < view->block->n_token; i++)
        tokens->tokens[view->document[i] * tokens->stride + view->topic[i]] += 1;
}

/* Makes the list of the topics of one document, with their counts set to 0. Each slot, which holds
 * a topic, then holds the place of this topic in the list. `place` is empty before and after the
 * call. */
static void count_document(uint16_t *slot, int64_t length, int32_t n_topic, int32_t *place,
                           em_topic_list *list)
{
    int32_t n = 0;

    for (int64_t j = 0; j < length; j++) {
        const int32_t k = slot[j], known = place[k], at = known < n ? known : n;
        if (k == n_topic)
            continue;
        n += at == n;
        place[k] = at;
        list->topic[at] = (uint16_t)k;
        list->count[at] += 1;
        slot[j] = (uint16_t)at;
    }
    for (int32_t i = 0; i < n; i++)
        place[list->topic[i]] = INT32_MAX;
    list->n = n;
}

/* Makes the lists of the topics of all documents in a block. Their order is that of the tokens in
 * the slots. */
static void count_sparse(em_tokens *tokens, const em_block_view *view)
{
    const em_token_block *block = view->block;
    uint16_t *slot = tokens->slot_place;
    int64_t at = 0;

    for (int64_t i = 0; i < block->n_token; i++)
        slot[view->slot[i]] = view->topic[i];
    for (int64_t i = 0; i < block->n_document; i++) {
        const int64_t length = tokens->length[block->first_document + i];
        const int64_t room = em_topic_list_capacity(tokens->n_topic, length);
        em_topic_list *list = &tokens->list[i];
        *list = (em_topic_list){0, tokens->list_topic + at, tokens->list_count + at};
        memset(list->count, 0, (size_t)room * sizeof *list->count);
        count_document(slot, length, (int32_t)tokens->n_topic, tokens->place, list);
        for (int64_t j = list->n; j < room; j++)
            list->topic[j] = (uint16_t)tokens->n_topic;
        at += room;
        slot += em_padded_length(length);
    }
}

/* The counts to which the tokens of a word are added while they are drawn. */
static int32_t *counts_of(const em_sweep *sweep, int64_t word)
{
    const em_lda_exchange *e = sweep->exchange;

    return word >= e->own.first && word < e->own.end
               ? sweep->count + (word - e->own.first) * e->stride
               : e->elsewhere;
}

static void sweep_runs(em_tokens *tokens, const em_block_view *view, const em_sweep *sweep)
{
    const em_token_kernels *kernels = em_token_kernels_best();
    const int64_t n_group = em_topic_groups(tokens->n_topic);
    em_token_run run = {.bits = tokens->bits,
                        .n_topic = tokens->n_topic,
                        .stride = tokens->stride,
                        .alpha = tokens->alpha,
                        .tokens = tokens->tokens,
                        .list = tokens->list,
                        .place = tokens->slot_place,
                        .room = tokens->room};

    for (int64_t r = 0; r < view->block->n_run; r++) {
        const int64_t word = view->run_word[r], first = view->run_start[r];
        const bool is_last = r + 1 == view->block->n_run;
        const int64_t next = is_last ? word : view->run_word[r + 1];
        run.n = view->run_start[r + 1] - first;
        run.n_more = view->block->n_token - view->run_start[r + 1];
        run.document = view->document + first;
        run.slot = view->slot + first;
        run.topic = view->topic + first;
        run.phi = sweep->phi + word * tokens->stride;
        run.next_phi = sweep->phi + next * tokens->stride;
        if (tokens->sparse) {
            run.groups = tokens->groups + word * n_group;
            run.grouped = tokens->grouped[word];
            tokens->grouped[word] = true;
            kernels->sparse(&run);
        } else {
            run.count = counts_of(sweep, word);
            run.next_count = counts_of(sweep, next);
            kernels->dense(&run);
        }
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

/* The term of a topic with n tokens in a document; it comes from a table if n is small. */
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

static em_status sweep_block(em_tokens *tokens, int64_t b, const em_sweep *sweep, double total,
                             const em_token_topics *topics)
{
    const em_token_block *block = &tokens->block[b];
    em_block_view view;
    em_status status = em_block_open(tokens, b, topics, &view);

    if (status)
        return status;
    draw_bits(tokens, block, sweep);
    (tokens->sparse ? count_sparse : count_dense)(tokens, &view);
    sweep_runs(tokens, &view, sweep);
    if (sweep->sums)
        sum_block(tokens, block, sweep, total);
    status = em_lda_exchange_add(sweep->exchange, &view, !tokens->sparse, sweep->count);
    return status ? status : em_block_close(tokens, topics, &view);
}

static void begin_counts(const em_sweep *sweep)
{
    const em_lda_exchange *e = sweep->exchange;

    memset(sweep->count, 0,
           (size_t)((e->own.end - e->own.first) * e->stride) * sizeof *sweep->count);
}

/* Sends counts to the shards of their words. To be repeated until *more is false. */
static em_status send_counts(const em_sweep *sweep, em_status own, bool *more)
{
    return em_lda_exchange_send(sweep->exchange, sweep->shards, own, more, sweep->count);
}

static em_status send_full(const em_sweep *sweep, bool *failed)
{
    bool more = true;
    em_status status;

    if (!em_lda_exchange_is_full(sweep->exchange))
        return EM_OK;
    status = send_counts(sweep, EM_OK, &more);
    *failed = status < 0;
    return status;
}

static em_status send_rest(const em_sweep *sweep, em_status own)
{
    bool more;
    em_status status;

    do {
        more = false;
        status = send_counts(sweep, own, &more);
    } while (!status && more);
    return status;
}

/* The sum of numbers in integer units of the largest one. It does not depend on the order of
 * topics, so that chains that number their topics differently agree. */
static double sum_of(int64_t n, const double *alpha)
{
    double largest = 0;
    int64_t sum = 0;

    for (int64_t k = 0; k < n; k++)
        largest = fmax(largest, alpha[k]);
    const double unit = largest * 0x1p-45;
    for (int64_t k = 0; k < n; k++)
        sum += llround(alpha[k] / unit);
    return (double)sum * unit;
}

em_status em_tokens_sweep(em_tokens *tokens, const em_sweep *sweep, const em_token_topics *topics)
{
    const double total = sum_of(tokens->n_topic, sweep->alpha);
    bool failed = false;
    em_status status = EM_OK;

    begin_counts(sweep);
    if (sweep->sums) {
        memset(sweep->sums, 0, (size_t)(EM_LDA_SLOPES + tokens->n_topic) * sizeof *sweep->sums);
        fill_table(tokens, sweep->alpha);
    }
    if (tokens->sparse)
        memset(tokens->grouped, 0, (size_t)tokens->n_word * sizeof *tokens->grouped);
    for (int64_t k = 0; k < tokens->n_topic; k++)
        tokens->alpha[k] = (float)sweep->alpha[k];
    for (int64_t b = 0; !status && b < tokens->n_block && tokens->block[b].level <= sweep->level;
         b++) {
        status = sweep_block(tokens, b, sweep, total, topics);
        if (!status)
            status = send_full(sweep, &failed);
    }
    return failed ? status : send_rest(sweep, status);
}

static void start_block(const em_tokens *tokens, const em_stream *stream, const em_block_view *view)
{
    const em_token_block *block = view->block;

    for (int64_t i = 0; i < block->n_token; i++) {
        const int64_t d = block->first_document + view->document[i];
        view->topic[i] = (uint16_t)tokens->n_topic;
        if (block->level == 0)
            view->topic[i] = (uint16_t)em_uniform_below(stream, (uint64_t)tokens->number[d],
                                                        (uint64_t)tokens->n_topic);
    }
}

em_status em_tokens_start(em_tokens *tokens, uint64_t seed, int64_t chain,
                          const em_token_topics *topics)
{
    const em_stream stream = {.seed = seed, .chain = (uint64_t)chain, .purpose = EM_RNG_START};
    em_block_view view;
    em_status status = EM_OK;

    for (int64_t b = 0; !status && b < tokens->n_block; b++) {
        status = em_block_open(tokens, b, topics, &view);
        if (!status) {
            start_block(tokens, &stream, &view);
            status = em_block_close(tokens, topics, &view);
        }
    }
    return status;
}

/* ---------------------------------------------------------------- what is saved */

/* Finds the positions at which the slots of each document of a block begin, in tokens->item, which
 * has memory for them. */
static void find_slots(em_tokens *tokens, const em_token_block *block)
{
    uint64_t slot = 0;

    for (int64_t i = 0; i < block->n_document; i++) {
        tokens->item[i] = slot;
        slot += (uint64_t)em_padded_length(tokens->length[block->first_document + i]);
    }
}

/* The position of token i of a block among this shard's tokens in the order of the corpus. The
 * slots of the block were found before. */
static int64_t position_of(const em_tokens *tokens, const em_block_view *view, int64_t i)
{
    const int64_t d = view->document[i];

    return tokens->first[view->block->first_document + d] +
           (int64_t)(view->slot[i] - tokens->item[d]);
}

void em_tokens_own_part(const em_tokens *tokens, int64_t begin, int64_t total, int64_t *first,
                        int64_t *count)
{
    const int64_t own_end = tokens->first_token + tokens->n_token;
    const int64_t from = tokens->first_token > begin ? tokens->first_token : begin;
    const int64_t end = own_end < begin + total ? own_end : begin + total;

    *count = end > from ? end - from : 0;
    *first = *count > 0 ? from - begin : 0;
}

/* Whether a block may have some of the tokens first .. end - 1. */
static bool may_have(const em_token_block *block, int64_t first, int64_t end)
{
    return block->begin < end && block->end > first;
}

em_status em_tokens_copy(em_tokens *tokens, const em_token_topics *topics, bool restores,
                         int64_t first, int64_t count, uint16_t *ordered)
{
    em_block_view view;
    em_status status = EM_OK;

    for (int64_t b = 0; !status && b < tokens->n_block; b++) {
        if (!may_have(&tokens->block[b], first, first + count))
            continue;
        status = em_block_open(tokens, b, topics, &view);
        find_slots(tokens, &tokens->block[b]);
        for (int64_t i = 0; !status && i < view.block->n_token; i++) {
            const int64_t at = position_of(tokens, &view, i) - first;
            if (at < 0 || at >= count)
                continue;
            if (restores)
                view.topic[i] = ordered[at];
            else
                ordered[at] = view.topic[i];
        }
        if (!status && restores)
            status = em_block_close(tokens, topics, &view);
    }
    return status;
}

em_status em_tokens_count(em_tokens *tokens, const em_token_topics *topics, const em_sweep *sweep)
{
    const em_lda_words own = sweep->exchange->own;
    em_block_view view;
    bool failed = false;
    em_status status = EM_OK;

    begin_counts(sweep);
    for (int64_t b = 0; !status && b < tokens->n_block; b++) {
        status = em_block_open(tokens, b, topics, &view);
        if (!status)
            status = em_lda_exchange_add(sweep->exchange, &view, false, sweep->count);
        if (!status)
            status = send_full(sweep, &failed);
    }
    if (!failed)
        status = send_rest(sweep, status);
    for (int64_t v = 0; v < own.end - own.first; v++) /* tokens of no topic so far */
        sweep->count[v * tokens->stride + tokens->n_topic] = 0;
    return status;
}
