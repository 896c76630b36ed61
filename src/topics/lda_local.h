/*
 * Local expectations of topic models. The topics of the tokens of some documents are drawn by Gibbs
 * sampling, given the word distributions phi of the topics and a prior alpha of each topic,
 *
 *     z_j | z of its other tokens ~ (alpha_k + n_dk) phi_{k, w_j},
 *
 * for `discard` burn-in sweeps and then `keep` sweeps that are used. The results are sums over
 * documents and used sweeps. They are integers, so they do not depend on the assignment of
 * documents to shards. The key of a document's random numbers is (seed, chain, evaluation,
 * document). All Local.
 */
#pragma once

#include "data/corpus/corpus.h"
#include "emass/model.h"
#include "emass/status.h"

#include <stdint.h>

/* The unit of sums other than counts. */
#define EM_LOCAL_UNIT 0x1p-20

/* The options of local expectations. EM_LOCAL_FIELDS: their rows, for a model whose options have
 * them as `member`. */
typedef struct em_local_options {
    int64_t discard, keep;
    bool warm_start;
} em_local_options;

#define EM_LOCAL_FIELDS(options, member)                                                           \
    EM_ROW_AS("local_discard", options, member.discard, EM_FIELD_INT, int64_t, .maximum = 1e6,     \
              .fallback = "5", .doc = "burn-in sweeps over the documents of a gradient"),          \
        EM_ROW_AS("local_sweeps", options, member.keep, EM_FIELD_INT, int64_t, .minimum = 1,       \
                  .maximum = 1e6, .fallback = "5",                                                 \
                  .doc = "sweeps after the burn-in, whose topics enter the gradient"),             \
        EM_ROW_AS(                                                                                 \
            "warm_start", options, member.warm_start, EM_FIELD_BOOL, bool, .fallback = "false",    \
            .doc = "start the topics of a document's tokens from those of the chain's last visit")

typedef struct em_local em_local;

/* `corpus` and `options` outlive it. Errors: EM_EMEMORY, and those of em_corpus_fetch. */
em_status em_local_create(em_corpus *corpus, int64_t n_topic, const em_local_options *options,
                          em_local **out);
void em_local_destroy(em_local **local); /* NULL-safe. */

/*
 * For a model with further latent variables of each document, which determine the prior of its
 * topics. Before each sweep `before` draws these variables, given the number of tokens in each
 * topic, and writes the prior: positive for every topic that the document has, and for at least
 * one. After each used sweep `after` adds to the model's own sums. Except with warm starts, the
 * first sweep starts with tokens without topics.
 */
typedef struct em_local_document {
    int64_t place;  /* index of work space of the document, below em_local_most_documents */
    int64_t number; /* in the corpus */
    int64_t length, sweep;
    uint64_t key;        /* a seed for this evaluation, for draws with the key (number, sweep) */
    const float *tokens; /* [n_topic] */
} em_local_document;

typedef struct em_local_each {
    void *self;
    void (*before)(void *self, const em_local_document *document, float *prior);
    void (*after)(void *self, const em_local_document *document);
} em_local_each;

/* Arguments of em_local_sample. Rows of words have stride = em_topic_stride(n_topic) numbers. */
typedef struct em_local_query {
    em_draw draw;        /* the key of random numbers */
    em_rows rows;        /* which documents of this shard */
    const double *alpha; /* [n_topic]; or */
    const em_local_each *each;
    const float *phi; /* [n_word][stride], none of them 0 but for the padding */
    uint16_t *topic;  /* [n_token of this shard] of the chain, for warm starts; else NULL */
} em_local_query;

/*
 * Results, which are added to: count [n_word][n_topic] tokens of each word in each topic; slope
 * [n_topic] sum_d alpha_k [psi(alpha_k + n_dk) - psi(alpha_k)]; and *density the log probability of
 * the topics, sum_dk log Gamma(alpha_k + n_dk) / Gamma(alpha_k) - log Gamma(A + n_d) / Gamma(A), A
 * = sum_k alpha_k; the last two in units of EM_LOCAL_UNIT. All are summed over the used sweeps.
 * With em_local_each only `count` is computed.
 */
typedef struct em_local_sums {
    double *count, *slope, *density; /* slope may be NULL: not needed */
} em_local_sums;

/* Errors: those of em_corpus_fetch. */
em_status em_local_sample(em_local *local, const em_local_query *query, const em_local_sums *sums);

/* The largest number of documents that are processed together. */
int64_t em_local_most_documents(const em_local *local);

/* The number of tokens of this shard, and of local document d. */
int64_t em_local_n_token(const em_local *local);
int64_t em_local_length(const em_local *local, int64_t d);

/* Sets topic [n_token] to no topic for every token. */
void em_local_start(const em_local *local, uint16_t *topic);
