#include "topics/lda_tokens.h"

#include "math/special.h"
#include "topics/lda_exchange.h"

#include <string.h>

/* ---------------------------------------------------------------- a sweep */

/* Makes the list of the topics of one document, with their counts set to 0. Each slot, which holds
 * a topic, then holds the place of this topic in the list. `place` is empty before and after the
 * call. */
static void count_document(uint16_t *slot, int64_t length, int32_t n_topic, int32_t *place,
                           em_topic_list *list)
{
    int32_t n = 0;

    for (int64_t j = 0; j < length; j++) {
        const int32_t k = slot[j], known = place[k], at = known < n ? known : n;
        if (k == n_topic) {
            slot[j] = EM_NO_PLACE;
            continue;
        }
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

/* Calls `see` for each document of a block, number i in the block: its slots begin at `slot`, its
 * topics at view->topic[token]. */
typedef void see_document(em_tokens *tokens, int64_t i, int64_t length, uint16_t *slot,
                          uint16_t *topic);

static void each_document(em_tokens *tokens, const em_block_view *view, see_document *see)
{
    uint16_t *slot = tokens->state, *topic = view->topic;

    for (int64_t i = 0; i < view->block->n_document; i++) {
        const int64_t length = tokens->length[view->block->first_document + i];
        see(tokens, i, length, slot, topic);
        slot += em_padded_length(length);
        topic += length;
    }
}

static void read_topics(em_tokens *tokens, int64_t i, int64_t length, uint16_t *slot,
                        uint16_t *topic)
{
    (void)tokens, (void)i;
    memcpy(slot, topic, (size_t)length * sizeof *slot);
}

static void write_topics(em_tokens *tokens, int64_t i, int64_t length, uint16_t *slot,
                         uint16_t *topic)
{
    (void)tokens, (void)i;
    memcpy(topic, slot, (size_t)length * sizeof *slot);
}

static void count_dense(em_tokens *tokens, int64_t i, int64_t length, uint16_t *slot,
                        uint16_t *topic)
{
    float *count = tokens->tokens + i * tokens->stride;

    read_topics(tokens, i, length, slot, topic);
    memset(count, 0, (size_t)tokens->stride * sizeof *count);
    for (int64_t j = 0; j < length; j++)
        count[topic[j]] += 1;
}

/* Makes the list of a document's topics, in the order in which they first occur. The list of the
 * document before it ends where this one begins. */
static void count_sparse(em_tokens *tokens, int64_t i, int64_t length, uint16_t *slot,
                         uint16_t *topic)
{
    const int64_t room = em_topic_list_capacity(tokens->n_topic, length);
    em_topic_list *list = &tokens->list[i];

    read_topics(tokens, i, length, slot, topic);
    *list = (em_topic_list){0, (int32_t)room, tokens->list_topic, tokens->list_count};
    if (i > 0) {
        list->topic = list[-1].topic + list[-1].room;
        list->count = list[-1].count + list[-1].room;
    }
    memset(list->count, 0, (size_t)room * sizeof *list->count);
    count_document(slot, length, (int32_t)tokens->n_topic, tokens->place, list);
    for (int64_t j = list->n; j < room; j++)
        list->topic[j] = (uint16_t)tokens->n_topic;
}

static void write_listed(em_tokens *tokens, int64_t i, int64_t length, uint16_t *slot,
                         uint16_t *topic)
{
    for (int64_t j = 0; j < length; j++)
        topic[j] = tokens->list[i].topic[slot[j]];
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
                        .topic = tokens->state,
                        .list = tokens->list,
                        .place = tokens->state,
                        .room = tokens->room};

    for (int64_t r = 0; r < view->block->n_run; r++) {
        const int64_t word = view->run_word[r], first = view->run_entry[r];
        const bool is_last = r + 1 == view->block->n_run;
        const int64_t next = is_last ? word : view->run_word[r + 1];
        run.n = view->run_entry[r + 1] - first;
        run.n_more = view->block->n_entry - view->run_entry[r + 1];
        run.entry = view->entry + first;
        run.drawn = tokens->drawn + view->run_token[r];
        run.phi = sweep->phi + word * tokens->stride;
        run.next_phi = sweep->phi + next * tokens->stride;
        if (tokens->sparse) {
            run.groups = tokens->groups + word * n_group;
            run.grouped = tokens->grouped[word];
            tokens->grouped[word] = true;
        }
        (tokens->sparse ? kernels->sparse : kernels->dense)(&run);
    }
}

/* ---------------------------------------------------------------- sums over documents */

static int64_t slope_of(double alpha, int64_t n)
{
    return em_topic_in_units(em_digamma(alpha + (double)n) - em_digamma(alpha));
}

/* The term of a topic with n tokens in a document; it comes from a table if n is small. */
static void fill_table(em_tokens *tokens, const double *alpha)
{
    for (int64_t k = 0; k < tokens->n_topic; k++) {
        if (alpha[k] == tokens->table_alpha[k])
            continue;
        tokens->table_alpha[k] = alpha[k];
        for (int64_t n = 0; n < EM_LDA_TABLE; n++) {
            tokens->table[k][n][0] = em_topic_density(alpha[k], n);
            tokens->table[k][n][1] = slope_of(alpha[k], n);
        }
    }
}

static void add_terms(const em_tokens *tokens, const em_sweep *sweep, int64_t k, int64_t n)
{
    const bool known = n < EM_LDA_TABLE;
    const double alpha = sweep->alpha[k];

    sweep->sums[EM_LDA_DENSITY] += known ? tokens->table[k][n][0] : em_topic_density(alpha, n);
    sweep->sums[EM_LDA_SLOPES + k] += known ? tokens->table[k][n][1] : slope_of(alpha, n);
}

static void sum_block(const em_tokens *tokens, const em_token_block *block, const em_sweep *sweep,
                      double total)
{
    for (int64_t i = 0; i < block->n_document; i++) {
        const int64_t length = tokens->length[block->first_document + i];
        sweep->sums[EM_LDA_DENSITY] -= em_topic_density(total, length);
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
    const em_stream stream = {.seed = sweep->seed,
                              .chain = (uint64_t)sweep->chain,
                              .iteration = (uint64_t)sweep->iteration,
                              .purpose = EM_RNG_TOKENS};
    const em_token_block *block = &tokens->block[b];
    em_block_view view;
    em_status status = em_block_open(tokens, b, topics, &view);

    if (status)
        return status;
    em_draw_token_bits(&stream, block->n_document, tokens->number + block->first_document,
                       tokens->length + block->first_document, tokens->item, tokens->bits);
    each_document(tokens, &view, tokens->sparse ? count_sparse : count_dense);
    sweep_runs(tokens, &view, sweep);
    each_document(tokens, &view, tokens->sparse ? write_listed : write_topics);
    if (sweep->sums)
        sum_block(tokens, block, sweep, total);
    status = em_lda_exchange_add(sweep->exchange, &view, tokens->drawn, sweep->count);
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

    if (!em_lda_exchange_is_full(sweep->exchange))
        return EM_OK;
    em_status status = send_counts(sweep, EM_OK, &more);
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
        status = status ? status : send_full(sweep, &failed);
    }
    return failed ? status : send_rest(sweep, status);
}

static void start_block(const em_tokens *tokens, const em_stream *stream, const em_block_view *view)
{
    const em_token_block *block = view->block;
    uint16_t *topic = view->topic;

    for (int64_t d = block->first_document; d < block->first_document + block->n_document; d++) {
        uint64_t k = (uint64_t)tokens->n_topic;
        if (block->level == 0)
            k = em_uniform_below(stream, (uint64_t)tokens->number[d], (uint64_t)tokens->n_topic);
        for (int32_t j = 0; j < tokens->length[d]; j++)
            *topic++ = (uint16_t)k;
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

void em_tokens_own_part(const em_tokens *tokens, int64_t begin, int64_t total, int64_t *first,
                        int64_t *count)
{
    const int64_t own_end = tokens->first_token + tokens->n_token;
    const int64_t from = tokens->first_token > begin ? tokens->first_token : begin;
    const int64_t end = own_end < begin + total ? own_end : begin + total;

    *count = end > from ? end - from : 0;
    *first = *count > 0 ? from - begin : 0;
}

/* Copies those of n topics, of tokens from position `at` of this shard on, that are among the
 * tokens first .. end - 1. */
static void copy_topics(uint16_t *topic, int64_t at, int64_t n, bool restores, int64_t first,
                        int64_t end, uint16_t *ordered)
{
    const int64_t from = em_most(at, first), to = em_least(at + n, end);
    const size_t bytes = (size_t)(to - from) * sizeof *topic;

    if (from < to && restores)
        memcpy(topic + (from - at), ordered + (from - first), bytes);
    else if (from < to)
        memcpy(ordered + (from - first), topic + (from - at), bytes);
}

em_status em_tokens_copy(em_tokens *tokens, const em_token_topics *topics, bool restores,
                         int64_t first, int64_t count, uint16_t *ordered)
{
    em_block_view view;
    em_status status = EM_OK;

    for (int64_t b = 0; !status && b < tokens->n_block; b++) {
        const em_token_block *block = &tokens->block[b];
        if (block->begin >= first + count || block->end <= first)
            continue; /* it has none of these tokens */
        status = em_block_open(tokens, b, topics, &view);
        uint16_t *topic = view.topic;
        for (int64_t i = 0; !status && i < block->n_document; i++) {
            const int64_t d = block->first_document + i;
            copy_topics(topic, tokens->first[d], tokens->length[d], restores, first, first + count,
                        ordered);
            topic += tokens->length[d];
        }
        if (!status && restores)
            status = em_block_close(tokens, topics, &view);
    }
    return status;
}

/* Writes the topics of a block in the order of runs. */
static void order_by_word(em_tokens *tokens, const em_block_view *view)
{
    uint16_t *drawn = tokens->drawn;

    each_document(tokens, view, read_topics);
    for (int64_t i = 0; i < view->block->n_entry; i++)
        for (int32_t j = 0; j < view->entry[i].count; j++)
            *drawn++ = tokens->state[view->entry[i].slot + (uint32_t)j];
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
        if (!status) {
            order_by_word(tokens, &view);
            status = em_lda_exchange_add(sweep->exchange, &view, tokens->drawn, sweep->count);
        }
        status = status ? status : send_full(sweep, &failed);
    }
    if (!failed)
        status = send_rest(sweep, status);
    for (int64_t v = 0; v < own.end - own.first; v++) /* tokens of no topic so far */
        sweep->count[v * tokens->stride + tokens->n_topic] = 0;
    return status;
}
