/*
 * The tokens of a shard's documents, laid out for sampling their topics: in blocks of documents
 * whose counts fit a processor's cache together, and within a block word by word, so that a word's
 * probabilities stay at hand. Given those, documents are independent: the order is free between
 * them, and within each it is that of the words. All Local.
 */
#ifndef EM_MODEL_LDA_TOKENS_H
#define EM_MODEL_LDA_TOKENS_H

#include "data/corpus.h"
#include "emass/status.h"
#include "math/tokens.h"

#include <stdbool.h>
#include <stdint.h>

/* Documents of one level; entries first_x .. first_x + n_x - 1 of the arrays below. */
typedef struct em_token_block {
    int64_t first_document, n_document;
    int64_t first_token, n_token;
    int64_t first_run, n_run;
    int level;
} em_token_block;

/*
 * Sums over documents in units of EM_LDA_UNIT: integers, the same however documents are dealt to
 * shards and added. With A = sum_k alpha_k:
 *     [0]      log p(topics of all tokens | alpha)
 *     [1]      sum_d psi(A + n_d) - psi(A)
 *     [2 + k]  sum_d psi(alpha_k + n_dk) - psi(alpha_k)
 */
#define EM_LDA_UNIT 0x1p-20
enum { EM_LDA_DENSITY, EM_LDA_TOTAL_SLOPE, EM_LDA_SLOPES, EM_LDA_TABLE = 64 };

typedef struct em_tokens {
    int64_t n_topic, stride; /* em_topic_stride */
    int64_t n_word, n_document, n_token;
    int64_t n_all, first_token; /* tokens of the whole corpus; those of shards before this one */
    int n_level; /* level l has every 2^(n_level - 1 - l)th document that no lower one has */
    bool sparse; /* documents keep lists of their topics */
    int64_t n_block;
    em_token_block *block;
    int64_t *number;    /* [n_document] in the corpus, in the order of the blocks */
    int32_t *length;    /* [n_document] tokens */
    int64_t *first;     /* [n_document] tokens of this shard that come before it in the corpus */
    int32_t *run_word;  /* [n_run] */
    int64_t *run_start; /* [n_run + 1] */
    uint16_t *document; /* [n_token] within the block */
    uint32_t *slot;     /* [n_token] of its random bits, within the block */
    /* Room to work in, for the largest block. */
    float *tokens;
    em_topic_list *list;
    int32_t *list_topic;
    float *list_count;
    uint64_t *item;
    uint32_t *bits;
    float *prior, *room;
    int64_t (*table)[EM_LDA_TABLE][2]; /* [n_topic] terms of [0] and of [2 + k], of this */
    double *table_alpha;               /* [n_topic]; 0: none so far */
} em_tokens;

/* `sparse`: -1 as is faster for so many topics, else 0 or 1. Errors: EM_EMEMORY. */
em_status em_tokens_create(const em_corpus *corpus, int64_t n_topic, int sparse, em_tokens **out);
void em_tokens_destroy(em_tokens **tokens); /* NULL-safe. */

typedef struct em_sweep {
    uint64_t seed;
    int64_t chain, iteration;
    int level;           /* documents up to this level */
    const double *alpha; /* [n_topic] */
    const float *phi;    /* [n_word][stride], padding 0 */
    int32_t *count;      /* [n_word][stride] tokens of the documents that were swept; written */
    int64_t *sums;       /* [EM_LDA_SLOPES + n_topic] written; NULL: not wanted */
} em_sweep;

/* Draws topic [n_token] anew, given phi, for the documents of the sweep; n_topic stands for none
 * so far. */
void em_tokens_sweep(em_tokens *tokens, const em_sweep *sweep, uint16_t *topic);

/* The start: every document of level 0 has one topic, by chance; others have none. */
void em_tokens_start(const em_tokens *tokens, uint64_t seed, int64_t chain, uint16_t *topic);

/* Topics of this shard's tokens from the order of the layout to that of the corpus, and back. */
void em_tokens_save(em_tokens *tokens, const uint16_t *topic, uint16_t *ordered);
void em_tokens_restore(em_tokens *tokens, const uint16_t *ordered, uint16_t *topic);

/* The tokens of each word in each topic, count [n_word][stride], of this shard. */
void em_tokens_count(const em_tokens *tokens, const uint16_t *topic, int32_t *count);

#endif
