/*
 * Local expectations of topic models. The topics of the tokens of some documents are drawn by Gibbs
 * sampling, given the word distributions phi of the topics and a prior alpha of each topic,
 *
 *     z_j | z of its other tokens ~ (alpha_k + n_dk) phi_{k, w_j},
 *
 * for `discard` burn-in sweeps and then `keep` sweeps that are used. n_dk is the number of the
 * document's tokens in topic k. The results are sums over documents and used sweeps. They are sums
 * of integers, so they do not depend on the assignment of documents to shards. The key of a
 * document's random numbers is (seed, chain, evaluation, document). All Local.
 */
#pragma once

#include "base/memory.h"
#include "data/corpus/corpus.h"
#include "emass/model.h"
#include "emass/status.h"

#include <stdint.h>

/* The options of local expectations. EM_LOCAL_FIELDS has their rows in the table of options, for a
 * model whose options have them as `member`. */
typedef struct em_local_options {
    int64_t discard, keep; /* sweeps */
    bool warm_start;       /* whether the topics of the last visit are the start */
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
em_status em_local_create(em_owner *owner, em_corpus *corpus, int64_t n_topic,
                          const em_local_options *options, em_local **out);

/* A document before or after a sweep. */
typedef struct em_local_document {
    int64_t place;         /* index of its work space, below em_local_most_documents */
    int64_t number;        /* in the corpus */
    int64_t length, sweep; /* tokens; number of the sweep, from 0, burn-in included */
    uint64_t key;          /* seed of this evaluation, for draws with the key (number, sweep) */
    const float *tokens;   /* [n_topic] tokens of the document in each topic */
} em_local_document;

/*
 * For a model with further latent variables of each document, which determine the prior of its
 * topics. Before each sweep, `before` draws these variables given document->tokens, and writes the
 * prior alpha of this document, prior [n_topic]. It is positive for every topic that the document
 * has, and for at least one. After each used sweep, `after` adds to the model's own sums. Before
 * the first sweep no token has a topic, except with warm starts.
 */
typedef struct em_local_each {
    void *self; /* passed to both */
    void (*before)(void *self, const em_local_document *document, float *prior);
    void (*after)(void *self, const em_local_document *document);
} em_local_each;

/* Arguments of em_local_sample. Rows of words have stride = em_topic_stride(n_topic) numbers. */
typedef struct em_local_query {
    em_draw draw;              /* the key of random numbers */
    em_rows rows;              /* which documents of this shard */
    const double *alpha;       /* [n_topic] the same for all documents; NULL: `each` gives it */
    const em_local_each *each; /* NULL: `alpha` is given */
    const float *phi;          /* [n_word][stride] positive; padding 0 */
    uint16_t *topic; /* [em_local_n_token] of this chain's tokens, for warm starts; else NULL */
} em_local_query;

/*
 * Results, which are added to. With A = sum_k alpha_k, each is a sum over the used sweeps of
 *     count    [n_word][n_topic] the tokens of each word in each topic,
 *     slope    [n_topic] sum_d alpha_k [psi(alpha_k + n_dk) - psi(alpha_k)],
 *     density  the log probability of the topics, sum_d (sum_k log [Gamma(alpha_k + n_dk) /
 *              Gamma(alpha_k)] - log [Gamma(A + n_d) / Gamma(A)]).
 * The last two are in units of EM_TOPIC_UNIT. With em_local_each only `count` is computed.
 */
typedef struct em_local_sums {
    double *count, *slope, *density; /* slope NULL: not needed */
} em_local_sums;

/* Errors: those of em_corpus_fetch. */
em_status em_local_sample(em_local *local, const em_local_query *query, const em_local_sums *sums);

/* The largest number of documents that are in work at the same time. */
int64_t em_local_most_documents(const em_local *local);

/* The number of tokens of this shard, and of local document d. */
int64_t em_local_n_token(const em_local *local);
int64_t em_local_length(const em_local *local, int64_t d);

/* Removes the topics of all tokens: sets topic [em_local_n_token] to n_topic, which means none. */
void em_local_start(const em_local *local, uint16_t *topic);
