/*
 * The counts of tokens by word and topic over all shards. The counts of a word are stored by the
 * shard that draws its probabilities (em_lda_own_words). The other shards send it the topics of its
 * tokens, two bytes each, which are fewer numbers than counts.
 */
#pragma once

#include "emass/shards.h"
#include "topics/lda_tokens.h"
#include "topics/lda_topics.h"

typedef struct em_lda_exchange {
    int64_t shard, n_shard;
    int64_t n_word, stride;
    em_lda_words own;
    int64_t *bytes, *taken, *capacity; /* [n_shard] */
    void **out;                        /* [n_shard] messages to each shard */
    char *in;
    int64_t in_capacity;
} em_lda_exchange;

/* Errors: EM_EMEMORY. Local. */
em_status em_lda_exchange_create(int64_t n_word, int64_t stride, int64_t shard, int64_t n_shard,
                                 em_lda_exchange *out);
void em_lda_exchange_release(em_lda_exchange *exchange); /* Local. */

/* Adds the tokens of a block, whose topics in the order of runs are `topic` [n_token]. Those of
 * this shard's words are added to count [own words][stride]; those of other words are buffered for
 * their shards. Errors: EM_EMEMORY. Local. */
em_status em_lda_exchange_add(em_lda_exchange *exchange, const em_block_view *view,
                              const uint16_t *topic, int32_t *count);

/* Whether the buffers are full enough to be sent. Local. */
bool em_lda_exchange_is_full(const em_lda_exchange *exchange);

/* Sends the buffered tokens and counts the received ones. *more, on entry: whether this shard will
 * send again; on return: whether any shard will. All shards call it until *more is false. `own` is
 * the status of this shard. With one shard it does nothing. Collective over the ranks of a group.
 * Errors, agreed: EM_EMEMORY, those passed in `own`. */
em_status em_lda_exchange_send(em_lda_exchange *exchange, const em_shards *shards, em_status own,
                               bool *more, int32_t *count);
