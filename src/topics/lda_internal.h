/* What model lda, for its own sampler, is made of (lda.c, lda_checkpoint.c). */
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
    bool counted; /* count holds those of the topics */
    em_token_topics topic;
    int32_t *count; /* [own words][stride] tokens of all shards */
    float *phi;     /* [n_word][stride] as last drawn, which shards share; without store_phi, after
                       an iteration, whatever was reported or averaged */
} lda_chain;

/* Topics go into a checkpoint in pieces of so many tokens of the corpus. */
enum { PIECE_TOKENS = 1 << 22 };

typedef struct lda {
    em_model model;
    const lda_options *options;
    em_corpus *corpus; /* its words and sizes */
    em_tokens *tokens;
    em_topic_record *record;
    em_lda_shape shape;
    int64_t shard, n_shard;
    em_lda_words own; /* whose laws this shard draws */
    em_lda_exchange exchange;
    const em_shards *shards; /* NULL: one */
    int64_t first_chain, n_chain;
    lda_chain *chain;   /* [n_chain] */
    double chain_bytes; /* of each of them */
    em_variable variable[EM_TOPIC_VARIABLES], average[EM_TOPIC_AVERAGES];
    /* Room to work in. */
    double *room, *alpha, *tokens_of; /* the last: [n_topic] */
    int64_t *total, *sums;            /* [n_topic]; [n_sum] */
    float *phi;                       /* [n_word][stride] a mean, where draws are stored; shared */
    uint16_t *ordered;                /* [n_chain][tokens of a piece] for visits */
} lda;

/* Passes the topics of all tokens to a visitor, in the order of the corpus. Counts follow from
 * them. Collective. */
em_status em_lda_visit_topics(lda *self, const em_visitor *visitor);
