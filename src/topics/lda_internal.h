/* The state of model lda for its Gibbs sampler (lda.c, lda_checkpoint.c). */
#pragma once

#include "data/corpus/corpus.h"
#include "emass/model.h"
#include "topics/lda_exchange.h"
#include "topics/lda_tokens.h"
#include "topics/lda_topics.h"
#include "topics/topic_record.h"

#include <stdbool.h>

typedef struct lda_options {
    em_topic_options topic;
    char *scratch;
    double alpha;
} lda_options;

/* The topics of the tokens of this shard, and the counts over all shards. */
typedef struct lda_chain {
    bool counted; /* `count` agrees with `topic` */
    em_token_topics topic;
    int32_t *count; /* [own words][stride] tokens of all shards */
    float *phi;     /* [n_word][stride] shared by the shards: the last draw. Without store_phi it
                       may be the mean of phi given the topics, after an iteration */
} lda_chain;

/* A checkpoint has the topics of tokens in pieces of PIECE_TOKENS tokens of the corpus. */
enum { PIECE_TOKENS = 1 << 22 };

typedef struct lda {
    em_model model;
    em_owner memory; /* of arrays and records */
    const lda_options *options;
    em_corpus *corpus; /* its words and sizes */
    em_tokens *tokens;
    em_topic_record *record;
    em_lda_shape shape;
    int64_t shard, n_shard;
    em_lda_words own; /* words whose phi this shard draws */
    em_lda_exchange exchange;
    const em_shards *shards; /* NULL: one shard */
    int64_t first_chain, n_chain;
    lda_chain *chain;   /* [n_chain] */
    double chain_bytes; /* memory of each of them */
    em_variable variable[EM_TOPIC_VARIABLES], average[EM_TOPIC_AVERAGES];
    /* Work space: */
    double *room, *alpha, *tokens_of; /* [stride]; [n_topic]; [n_topic] tokens of each topic */
    int64_t *total, *sums;            /* [n_topic]; [n_sum] sums over the shards */
    float *phi;                       /* [n_word][stride] with store_phi: the mean of phi given the
                                         topics; shared by the shards */
    uint16_t *ordered;                /* [n_chain][PIECE_TOKENS or fewer] for em_lda_visit_topics */
} lda;

/* Passes the topics of all tokens to a visitor, in the order of the corpus. Counts are not passed,
 * because topics determine them. Collective. */
em_status em_lda_visit_topics(lda *self, const em_visitor *visitor);
