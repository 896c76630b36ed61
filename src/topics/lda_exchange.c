#include "topics/lda_exchange.h"

#include "base/memory.h"

#include <string.h>

/* Data are sent when this many bytes have gathered. */
enum { FULL = 1 << 24 };

em_status em_lda_exchange_create(int64_t n_word, int64_t stride, int64_t shard, int64_t n_shard,
                                 em_lda_exchange *out)
{
    *out = (em_lda_exchange){.shard = shard,
                             .n_shard = n_shard,
                             .n_word = n_word,
                             .stride = stride,
                             .own = em_lda_own_words(n_word, shard, n_shard)};
    return em_allocate_all(EM_ARRAY(out->bytes, n_shard), EM_ARRAY(out->taken, n_shard),
                           EM_ARRAY(out->capacity, n_shard), EM_ARRAY(out->out, n_shard));
}

void em_lda_exchange_release(em_lda_exchange *e)
{
    for (int64_t s = 0; e->out && s < e->n_shard; s++)
        em_release(&e->out[s]);
    em_release_all(&e->bytes, &e->taken, &e->capacity, &e->out, &e->in);
}

/* Runs of tokens of one word each. Run r has the topics from index start[r] - start[0] on. */
typedef struct runs {
    int64_t n;
    const int32_t *word;   /* [n] */
    const uint32_t *start; /* [n + 1] */
    const uint16_t *topic;
} runs;

/* Counts the topics of runs. Counts are seldom in a cache, and only a few of a row are needed, so
 * those of the run after the next are prefetched. */
static void count_runs(const em_lda_exchange *e, const runs *of, int32_t *count)
{
    enum { AHEAD = 2 };

    for (int64_t r = 0; r < of->n; r++) {
        const int64_t later = r + AHEAD < of->n ? r + AHEAD : of->n - 1;
        int32_t *row = count + (of->word[later] - e->own.first) * e->stride;
        for (uint32_t i = of->start[later] - of->start[0]; i < of->start[later + 1] - of->start[0];
             i++)
            __builtin_prefetch(row + of->topic[i], 1);
        row = count + (of->word[r] - e->own.first) * e->stride;
        for (uint32_t i = of->start[r] - of->start[0]; i < of->start[r + 1] - of->start[0]; i++)
            row[of->topic[i]]++;
    }
}

/* The runs of a block from run r on whose words are below `end`. The words of a block ascend. */
static runs runs_until(const em_block_view *view, const uint16_t *topic, int64_t r, int64_t end)
{
    int64_t n = 0;

    while (r + n < view->block->n_run && view->run_word[r + n] < end)
        n++;
    return (runs){n, view->run_word + r, view->run_token + r, topic + view->run_token[r]};
}

/* The size of a message of runs, in bytes: the number of runs, their words and where they begin,
 * and their topics. Each part is padded to four bytes. */
static int64_t parcel_bytes(const runs *of)
{
    const int64_t n_token = of->start[of->n] - of->start[0];

    return 4 * (2 + 2 * of->n + (n_token + 1) / 2);
}

static em_status pack(em_lda_exchange *e, int64_t s, const runs *of)
{
    const int64_t more = e->bytes[s] + parcel_bytes(of);
    em_status status = em_array_reserve(&e->out[s], &e->capacity[s], e->bytes[s], more, 1);

    if (status)
        return status;
    int32_t *parcel = (int32_t *)(void *)((char *)e->out[s] + e->bytes[s]);
    parcel[0] = (int32_t)of->n;
    memcpy(parcel + 1, of->word, (size_t)of->n * sizeof *of->word);
    memcpy(parcel + 1 + of->n, of->start, (size_t)(of->n + 1) * sizeof *of->start);
    memcpy(parcel + 2 + 2 * of->n, of->topic,
           (of->start[of->n] - of->start[0]) * sizeof *of->topic);
    e->bytes[s] = more;
    return EM_OK;
}

static int64_t count_parcel(const em_lda_exchange *e, const char *from, int32_t *count)
{
    const int32_t *parcel = (const int32_t *)(const void *)from;
    const int64_t n = parcel[0];
    const runs of = {n, parcel + 1, (const uint32_t *)(parcel + 1 + n),
                     (const uint16_t *)(parcel + 2 + 2 * n)};

    count_runs(e, &of, count);
    return parcel_bytes(&of);
}

em_status em_lda_exchange_add(em_lda_exchange *e, const em_block_view *view, const uint16_t *topic,
                              int32_t *count)
{
    em_status status = EM_OK;

    for (int64_t s = 0, r = 0; !status && s < e->n_shard; s++) {
        const runs of = runs_until(view, topic, r, em_lda_own_words(e->n_word, s, e->n_shard).end);
        r += of.n;
        if (of.n > 0 && s != e->shard)
            status = pack(e, s, &of);
        else if (of.n > 0)
            count_runs(e, &of, count);
    }
    return status;
}

bool em_lda_exchange_is_full(const em_lda_exchange *e)
{
    int64_t bytes = 0;

    for (int64_t s = 0; s < e->n_shard; s++)
        bytes += e->bytes[s];
    return bytes > FULL;
}

em_status em_lda_exchange_send(em_lda_exchange *e, const em_shards *shards, em_status own,
                               bool *more, int32_t *count)
{
    int64_t n_more = *more, in = 0;

    if (e->n_shard == 1)
        return own;
    em_status status = shards->sum(shards->context, own, 1, &n_more);
    if (!status)
        status = shards->exchange(shards->context, EM_OK, e->bytes, (const void *const *)e->out,
                                  e->taken, &e->in_capacity, &e->in);
    if (status)
        return status;
    *more = n_more > 0;
    for (int64_t s = 0; s < e->n_shard; s++) {
        in += e->taken[s];
        e->bytes[s] = 0;
    }
    for (int64_t at = 0; at < in;)
        at += count_parcel(e, e->in + at, count);
    return EM_OK;
}
