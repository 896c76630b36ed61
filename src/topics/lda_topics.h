/*
 * The topics of latent Dirichlet allocation (EQUATIONS 22) given the topics of all tokens: their
 * word distributions, and the hyperparameters. All results are computed from counts over all
 * documents, which are integers. All Local.
 */
#pragma once

#include "emass/status.h"
#include "math/rng.h"

#include <stdbool.h>
#include <stdint.h>

/* With at least this number of topics, documents keep lists of their topics, and word distributions
 * are drawn by jumps. The rule depends only on the model, so all ranks have the same. */
enum { EM_MANY_TOPICS = 192 };

typedef struct em_lda_shape {
    int64_t n_word, n_topic, stride; /* em_topic_stride(n_topic) */
    bool jumps; /* gamma variates of a small beta are drawn as jumps of a gamma process */
} em_lda_shape;

/* Words first .. end - 1. Work over all words and topics may be divided between the shards, because
 * its sums are of integers. Arrays `count` hold these words alone, [words][stride]. */
typedef struct em_lda_words {
    int64_t first, end;
} em_lda_words;

/* The words of a shard. */
em_lda_words em_lda_own_words(int64_t n_word, int64_t shard, int64_t n_shard);

/*
 * phi_k ~ Dirichlet(beta + n_k.), for all topics: phi [n_word][stride] from count [words][stride],
 * in two steps. em_lda_draw_weights draws the weights of some words, with the key (seed, chain,
 * iteration), and writes their sums, total [n_topic], as integers. em_lda_scale divides the weights
 * of some words by the sums over all words. No phi is below 1e-30, so that every word can have
 * every topic. With `jumps`, and beta at most 1/32, Gamma(beta + n) is drawn as Gamma(n) and the
 * jumps of a gamma process of length beta (math/rng.h) that are larger than the unit in which
 * weights are added, 2^-32: the time then grows with the counts that are not 0 and with 25 beta
 * topics a word. `room` [em_stride(stride)] is work space.
 */
void em_lda_draw_weights(const em_lda_shape *shape, em_lda_words words, const em_stream *stream,
                         double beta, const int32_t *count, double *room, int64_t *total,
                         float *phi);
void em_lda_scale(const em_lda_shape *shape, em_lda_words words, const int64_t *total, double *room,
                  float *phi);

/* total [n_topic]: the counts n_k over some words. */
void em_lda_total(const em_lda_shape *shape, em_lda_words words, const int32_t *count,
                  int64_t *total);

/* The mean of phi given the topics of all tokens: (beta + n_kv) / (V beta + n_k), for some words.
 * `room` [n_topic]. */
void em_lda_mean_phi(const em_lda_shape *shape, em_lda_words words, double beta,
                     const int32_t *count, const int64_t *total, double *room, float *phi);

/* log p(words | topics of all tokens, beta) with phi integrated out, in units of EM_LDA_UNIT and in
 * two terms: that of some words, and that of the sums n_k. */
int64_t em_lda_log_words(const em_lda_shape *shape, em_lda_words words, double beta,
                         const int32_t *count);
int64_t em_lda_log_total(const em_lda_shape *shape, double beta, const int64_t *total);

/* One step of Minka's fixed-point iteration (2000): for alpha, from the sums of lda_tokens.h at
 * this alpha; for beta, from the sum over all words of em_lda_slope at this beta, in units of
 * EM_LDA_UNIT. Values stay within 1e-6 .. 1e3. */
void em_lda_learn_alpha(int64_t n_topic, const int64_t *sums, double *alpha);
int64_t em_lda_slope(const em_lda_shape *shape, em_lda_words words, double beta,
                     const int32_t *count);
double em_lda_learn_beta(const em_lda_shape *shape, const int64_t *total, int64_t slope,
                         double beta);

/*
 * The priors that the chains have learned become common to all of them, at the end of warmup.
 * Otherwise each chain would have a posterior of its own, and their log densities would differ even
 * if they agreed. Topics have other numbers in each chain, so the i-th largest topics of all chains
 * are pooled.
 */
typedef struct em_lda_learned {
    int64_t n_topic, n_chain, stride;
    bool alpha, beta; /* which of them were learned */
    bool is_first;    /* this rank has the first shard of its chains: their others pass the same */
    const int64_t *tokens; /* [n_chain][n_topic] tokens of each topic */
} em_lda_learned;

/* Replaces theta [n_chain][stride], the logarithms of alpha [n_topic] and of beta, by their means
 * over all chains of the run. Sums are of integers, so the result is the same on any number of
 * ranks. Collective over all ranks. Errors, agreed: EM_EMEMORY. */
em_status em_lda_pool_priors(const em_lda_learned *learned, double *theta);
