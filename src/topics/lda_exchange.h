/*
 * The counts n_kv of tokens of word v in topic k over all shards. The counts of a word are stored
 * by the shard that draws phi of this word (em_lda_own_words). The other shards send that shard the
 * topics of the word's tokens, two bytes each. These are fewer bytes than counts of all topics.
 */
#pragma once

#include "emass/shards.h"
#include "topics/lda_tokens.h"
#include "topics/lda_topics.h"

typedef struct em_lda_exchange {
    int64_t shard, n_shard;
    int64_t n_word, stride;
    em_lda_words own;
    int64_t *bytes, *taken, *capacity; /* [n_shard] bytes to send, received, allocated */
    void **out;                        /* [n_shard] the message to each shard */
    char *in;                          /* received messages */
    int64_t in_capacity;               /* bytes */
} em_lda_exchange;

/* Errors: EM_EMEMORY. Local. */
em_status em_lda_exchange_create(int64_t n_word, int64_t stride, int64_t shard, int64_t n_shard,
                                 em_lda_exchange *out);
void em_lda_exchange_release(em_lda_exchange *exchange); /* Local. */

/* Adds the tokens of a block. `topic` [n_token] has their topics in the order of runs. Tokens of
 * this shard's words are added to count [own words][stride]. Topics of tokens of other words are
 * buffered for the shards of these words. Errors: EM_EMEMORY. Local. */
em_status em_lda_exchange_add(em_lda_exchange *exchange, const em_block_view *view,
                              const uint16_t *topic, int32_t *count);

/* Whether the buffers are full enough to be sent. Local. */
bool em_lda_exchange_is_full(const em_lda_exchange *exchange);

/* Sends the buffered topics, and adds the received ones to count [own words][stride]. On entry
 * *more is whether this shard will send again; on return, whether any shard will. All shards call
 * this until *more is false. `own` is the status of this shard so far. With one shard nothing is
 * sent. Collective over the ranks of a group. Errors, agreed: EM_EMEMORY, those passed in `own`. */
em_status em_lda_exchange_send(em_lda_exchange *exchange, const em_shards *shards, em_status own,
                               bool *more, int32_t *count);
