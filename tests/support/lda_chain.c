#include "support/lda_chain.h"

#include "base/memory.h"
#include "math/rng.h"
#include "topics/lda_tokens.h"
#include "topics/lda_topics.h"

#include <check.h>
#include <string.h>

/* Documents of shard `shard` of `n_shard` of a corpus that is the same whatever the shards. */
void make_corpus(sizes of, int64_t shard, int64_t n_shard, em_corpus *out)
{
    const em_stream stream = {.seed = 11, .purpose = EM_RNG_TEST};
    int64_t at = 0;

    memset(out, 0, sizeof *out);
    out->n_document = of.n_document;
    out->n_word = of.n_word;
    ck_assert_int_eq(em_allocate(of.n_document + 1, sizeof *out->start, &out->start), EM_OK);
    ck_assert_int_eq(em_allocate(of.n_document * of.most, sizeof *out->word, &out->word), EM_OK);
    ck_assert_int_eq(em_allocate(of.n_document * of.most, sizeof *out->count, &out->count), EM_OK);
    for (int64_t d = 0; d < of.n_document; d++) {
        const bool keeps = d * n_shard / of.n_document == shard;
        const int64_t n =
            (int64_t)em_uniform_below(&stream, (uint64_t)d, (uint64_t)of.most) + (of.most < 9);
        const int64_t before = out->n_token;
        for (int64_t j = 0; j < n; j++) {
            const uint64_t i = (uint64_t)(1000000 + d * of.most + j);
            const int64_t count = 1 + (int64_t)em_uniform_below(&stream, 2 * i, 3);
            out->n_token += count;
            out->word[at] = (int32_t)em_uniform_below(&stream, 2 * i + 1, (uint64_t)of.n_word);
            out->count[at] = (int32_t)count;
            at += keeps;
        }
        if (keeps && out->n_local == 0) {
            out->first_document = d;
            out->first_token = before;
        }
        out->n_local += keeps;
        out->start[out->n_local] = at;
    }
}

void release_corpus(em_corpus *corpus)
{
    em_release(&corpus->start);
    em_release(&corpus->word);
    em_release(&corpus->count);
}

void make_lda_chain(em_corpus *corpus, int64_t n_topic, int sparse, lda_chain *h)
{
    ck_assert_int_eq(em_tokens_create(corpus, n_topic, sparse, NULL, &h->tokens), EM_OK);
    const int64_t stride = h->tokens->stride, n = corpus->n_word * stride;
    h->shape = (em_lda_shape){corpus->n_word, n_topic, stride, false};
    ck_assert_int_eq(em_lda_exchange_create(corpus->n_word, stride, 0, 1, &h->exchange), EM_OK);
    ck_assert_int_eq(em_tokens_add_chain(h->tokens, &h->topics), EM_OK);
    h->topic = h->topics.held;
    ck_assert_int_eq(em_allocate(n, sizeof *h->count, &h->count), EM_OK);
    ck_assert_int_eq(em_allocate(n, sizeof *h->phi, &h->phi), EM_OK);
    ck_assert_int_eq(em_allocate(stride, sizeof *h->room, &h->room), EM_OK);
    ck_assert_int_eq(em_allocate(n_topic, sizeof *h->alpha, &h->alpha), EM_OK);
    ck_assert_int_eq(em_allocate(n_topic, sizeof *h->total, &h->total), EM_OK);
    ck_assert_int_eq(em_allocate(n_topic + EM_LDA_SLOPES, sizeof *h->sums, &h->sums), EM_OK);
    for (int64_t k = 0; k < n_topic; k++)
        h->alpha[k] = 0.3 + 0.2 * (double)(k % 3);
}

void release_lda_chain(lda_chain *h)
{
    em_tokens_destroy(&h->tokens);
    em_lda_exchange_release(&h->exchange);
    em_tokens_release_chain(&h->topics);
    em_release(&h->count);
    em_release(&h->phi);
    em_release(&h->room);
    em_release(&h->alpha);
    em_release(&h->total);
    em_release(&h->sums);
}

em_sweep sweep_of(lda_chain *h, uint64_t seed, int64_t iteration)
{
    return (em_sweep){.seed = seed,
                      .iteration = iteration,
                      .level = h->tokens->n_level - 1,
                      .alpha = h->alpha,
                      .phi = h->phi,
                      .count = h->count,
                      .exchange = &h->exchange};
}
