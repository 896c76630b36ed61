/*
 * Local expectations of topic models: the topics of the tokens of
 * some documents are drawn by Gibbs sampling, given the word distributions phi of topics and a
 * prior alpha of each topic,
 *
 *     z_j | z of its other tokens ~ (alpha_k + n_dk) phi_{k, w_j},
 *
 * for `discard` sweeps that are forgotten and `keep` that count. What comes out are sums over
 * documents and the sweeps that count, all of them integers: they are the same however documents
 * are dealt to shards. A document's random numbers are counted by (seed, chain, evaluation,
 * document). All Local.
 */
#pragma once

#include "data/corpus/corpus.h"
#include "emass/model.h"
#include "emass/status.h"

#include <stdint.h>

/* The unit of sums that are no counts. */
#define EM_LOCAL_UNIT 0x1p-20

/* The options of local expectations, of a model that has them as `member`. */
typedef struct em_local_options {
    int64_t discard, keep;
    bool warm_start;
} em_local_options;

#define EM_LOCAL_FIELDS(options, member)                                                           \
    EM_ROW_AS("local_discard", options, member.discard, EM_FIELD_INT, int64_t, .maximum = 1e6,     \
              .fallback = "5", .doc = "burn-in sweeps over the documents of a gradient"),          \
        EM_ROW_AS("local_sweeps", options, member.keep, EM_FIELD_INT, int64_t, .minimum = 1,       \
                  .maximum = 1e6, .fallback = "5", .doc = "sweeps after those, which count"),      \
        EM_ROW_AS(                                                                                 \
            "warm_start", options, member.warm_start, EM_FIELD_BOOL, bool, .fallback = "false",    \
            .doc = "start the topics of a document's tokens from those of the chain's last visit")

typedef struct em_local em_local;

/* `corpus` outlives it; `options` too. Errors: EM_EMEMORY, and those of em_corpus_fetch. */
em_status em_local_create(em_corpus *corpus, int64_t n_topic, const em_local_options *options,
                          em_local **out);
void em_local_destroy(em_local **local); /* NULL-safe. */

/*
 * For a model that keeps more of a document than the topics of its words, and whose prior of these
 * is the document's own: `before` each sweep it draws what it keeps, given the tokens that each
 * topic has, and says the prior of its topics (at least one above 0 that the document may have, and
 * all that it has); `after` each sweep that counts it sums what it wants to. The first sweep begins
 * with tokens of no topic, but for warm starts.
 */
typedef struct em_local_document {
    int64_t place;  /* below em_local_most_documents: its own during the sweeps of one document */
    int64_t number; /* in the corpus */
    int64_t length, sweep;
    uint64_t key; /* a seed of this evaluation's own, for draws counted by number and sweep */
    const float *tokens; /* [n_topic] */
} em_local_document;

typedef struct em_local_each {
    void *self;
    void (*before)(void *self, const em_local_document *document, float *prior);
    void (*after)(void *self, const em_local_document *document);
} em_local_each;

/* What is asked. Words have rows of `stride` = em_topic_stride(n_topic) numbers. */
typedef struct em_local_query {
    em_draw draw;        /* what random numbers are counted by */
    em_rows rows;        /* which documents of this shard */
    const double *alpha; /* [n_topic]; or */
    const em_local_each *each;
    const float *phi; /* [n_word][stride], none of them 0 but for the padding */
    uint16_t *topic;  /* [n_token of this shard] of the chain, for warm starts; else NULL */
} em_local_query;

/*
 * The answer, added to: count [n_word][n_topic] tokens of each word in each topic; slope [n_topic]
 * sum_d alpha_k [psi(alpha_k + n_dk) - psi(alpha_k)]; and *density the log probability of the
 * topics, sum_dk log Gamma(alpha_k + n_dk) / Gamma(alpha_k) - log Gamma(A + n_d) / Gamma(A), A =
 * sum_k alpha_k; the last two in units of EM_LOCAL_UNIT. Everything is summed over the sweeps that
 * count. With priors of each document's own, count alone.
 */
typedef struct em_local_sums {
    double *count, *slope, *density; /* slope may be NULL: not wanted */
} em_local_sums;

/* Errors: those of em_corpus_fetch. */
em_status em_local_sample(em_local *local, const em_local_query *query, const em_local_sums *sums);

/* Documents that are worked on together, at most. */
int64_t em_local_most_documents(const em_local *local);

/* Tokens of this shard, and of local document d. */
int64_t em_local_n_token(const em_local *local);
int64_t em_local_length(const em_local *local, int64_t d);

/* No topic for any token so far: topic [n_token]. */
void em_local_start(const em_local *local, uint16_t *topic);
