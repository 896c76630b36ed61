/*
 * How many tokens of each word are in each topic, of all shards. A word's counts are kept by the
 * shard that draws its laws (em_lda_own_words). The others send it the topics of its tokens, two
 * bytes each: there are fewer of them than counts.
 */
#pragma once

#include "emass/shards.h"
#include "topics/lda_tokens.h"
#include "topics/lda_topics.h"

typedef struct em_lda_exchange {
    int64_t shard, n_shard;
    int64_t n_word, stride;
    em_lda_words own;
    int32_t
        *elsewhere; /* [stride] room for counts of a word of another shard, which nobody reads */
    int64_t *bytes, *taken, *capacity; /* [n_shard] */
    void **out;                        /* [n_shard] what goes to each shard */
    char *in;
    int64_t in_capacity;
} em_lda_exchange;

/* Errors: EM_EMEMORY. Local. */
em_status em_lda_exchange_create(int64_t n_word, int64_t stride, int64_t shard, int64_t n_shard,
                                 em_lda_exchange *out);
void em_lda_exchange_release(em_lda_exchange *exchange); /* Local. */

/* Adds tokens to the counts of this shard's words, count [own words][stride], unless `counted`, and
 * keeps those of the others' words for them. Errors: EM_EMEMORY. Local. */
em_status em_lda_exchange_add(em_lda_exchange *exchange, const em_block_view *view, bool counted,
                              int32_t *count);

/* Whether so much is kept that it should be sent. Local. */
bool em_lda_exchange_is_full(const em_lda_exchange *exchange);

/* Sends what is kept, and counts what comes. `more`: whether this shard will send again; all shards
 * send as often as the one that does most often, until it is false for all. `own`: how this shard
 * has fared. Nothing to do for one shard. Collective over the ranks of a group. Errors, agreed. */
em_status em_lda_exchange_send(em_lda_exchange *exchange, const em_shards *shards, em_status own,
                               bool *more, int32_t *count);
