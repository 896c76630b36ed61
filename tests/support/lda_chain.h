/* A corpus drawn at random, and the state of one chain of latent Dirichlet allocation on it. */
#ifndef TESTS_SUPPORT_LDA_CHAIN_H
#define TESTS_SUPPORT_LDA_CHAIN_H

#include "topics/lda_exchange.h"
#include "topics/lda_tokens.h"
#include "topics/lda_topics.h"

typedef struct sizes {
    int64_t n_document, n_word, most; /* entries of a document */
} sizes;

/* Documents of shard `shard` of `n_shard` of a corpus that is the same whatever the shards. */
void make_corpus(sizes of, int64_t shard, int64_t n_shard, em_corpus *out);
void release_corpus(em_corpus *corpus);

typedef struct lda_chain {
    em_tokens *tokens;
    em_lda_shape shape;
    em_lda_exchange exchange; /* of one shard */
    em_token_topics topics;
    uint16_t *topic; /* the same */
    int32_t *count;
    float *phi;
    double *room, *alpha;
    int64_t *total, *sums;
} lda_chain;

void make_lda_chain(em_corpus *corpus, int64_t n_topic, int sparse, lda_chain *h);
void release_lda_chain(lda_chain *h);
em_sweep sweep_of(lda_chain *h, uint64_t seed, int64_t iteration);

#endif
