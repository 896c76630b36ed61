/*
 * The word distributions phi of latent Dirichlet allocation and its hyperparameters alpha and beta
 * (EQUATIONS 22), given the topics of all tokens. All results are computed from counts over all
 * documents: n_kv tokens of word v in topic k, n_k = sum_v n_kv. All Local, but where noted.
 */
#pragma once

#include "emass/status.h"
#include "math/rng.h"

#include <stdbool.h>
#include <stdint.h>

/* With at least this number of topics, documents keep lists of their topics, and phi is drawn by
 * jumps (em_lda_draw_weights). The rule depends only on the model, so all ranks have the same. */
enum { EM_MANY_TOPICS = 192 };

/* The sizes of phi [n_word][stride], and how it is drawn. */
typedef struct em_lda_shape {
    int64_t n_word, n_topic, stride; /* em_topic_stride(n_topic) */
    bool jumps; /* gamma variates of a small beta are drawn as jumps of a gamma process */
} em_lda_shape;

/* Words first .. end - 1, called "some words" below. Work over all words may be divided between the
 * shards, because its sums are of integers. An array count [words][stride] has n_kv of these words
 * alone, but phi [n_word][stride] has all words. */
typedef struct em_lda_words {
    int64_t first, end;
} em_lda_words;

/* The words whose phi and counts belong to a shard. */
em_lda_words em_lda_own_words(int64_t n_word, int64_t shard, int64_t n_shard);

/*
 * phi_k ~ Dirichlet(beta + n_k1, .., beta + n_kV), for all topics k, in two steps.
 * em_lda_draw_weights draws the weights Gamma(beta + n_kv, 1) of some words into phi, with the key
 * (seed, chain, iteration). It writes their sums over these words to total [n_topic], as integers
 * in units of 2^-32. em_lda_scale divides the weights of some words by `total` over all words. No
 * phi is below 1e-30, so that every word can have every topic.
 *
 * With `jumps`, and beta at most 1/32, the weight is drawn as the sum of Gamma(n_kv, 1) and of the
 * jumps of a gamma process of length beta (math/rng.h). Jumps below 2^-32 are left out, because
 * they do not change `total`. A word has about 25 beta jumps a topic, so the time grows with the
 * number of counts that are not 0 and with the number of jumps. room [em_stride(stride)] is work
 * space.
 */
void em_lda_draw_weights(const em_lda_shape *shape, em_lda_words words, const em_stream *stream,
                         double beta, const int32_t *count, double *room, int64_t *total,
                         float *phi);
void em_lda_scale(const em_lda_shape *shape, em_lda_words words, const int64_t *total, double *room,
                  float *phi);

/* Computes total [n_topic], the sums of n_kv over some words. */
void em_lda_total(const em_lda_shape *shape, em_lda_words words, const int32_t *count,
                  int64_t *total);

/* Computes the mean of phi given the topics of all tokens, (beta + n_kv) / (V beta + n_k), for some
 * words. total [n_topic] has n_k over all words. room [n_topic] is work space. */
void em_lda_mean_phi(const em_lda_shape *shape, em_lda_words words, double beta,
                     const int32_t *count, const int64_t *total, double *room, float *phi);

/* The two terms of log p(words | topics of all tokens, beta), with phi integrated out: that of the
 * counts n_kv of some words, and that of total [n_topic], n_k over all words. In units of
 * EM_TOPIC_UNIT (lda_tokens.h). */
int64_t em_lda_log_words(const em_lda_shape *shape, em_lda_words words, double beta,
                         const int32_t *count);
int64_t em_lda_log_total(const em_lda_shape *shape, double beta, const int64_t *total);

/* One step of the fixed-point iteration of Minka (2000). For alpha [n_topic] it needs the sums
 * [EM_LDA_SLOPES + n_topic] of lda_tokens.h at this alpha. For beta it needs `slope`, the sum of
 * em_lda_slope over all words at this beta, in units of EM_TOPIC_UNIT, and total [n_topic], n_k
 * over all words. em_lda_learn_beta returns the new beta. Values stay within 1e-6 .. 1e3. */
void em_lda_learn_alpha(int64_t n_topic, const int64_t *sums, double *alpha);
int64_t em_lda_slope(const em_lda_shape *shape, em_lda_words words, double beta,
                     const int32_t *count);
double em_lda_learn_beta(const em_lda_shape *shape, const int64_t *total, int64_t slope,
                         double beta);

/*
 * At the end of warmup the alpha and beta that each chain has learned are replaced by their means
 * over the chains. Otherwise each chain would have another posterior, so the log densities of
 * chains that agree would differ. The same topic has another number in each chain, so the mean is
 * over the i-th largest topic of each chain.
 */
typedef struct em_lda_learned {
    int64_t n_topic, n_chain, stride; /* chains of this rank; stride of theta */
    bool alpha, beta;                 /* whether each was learned */
    bool is_first; /* whether this rank has the first shard of its chains: only it is counted,
                      because the other shards pass the same */
    const int64_t *tokens; /* [n_chain][n_topic] tokens of each topic */
} em_lda_learned;

/* Replaces theta [n_chain][stride], which has the logarithms of alpha [n_topic] and of beta, by
 * means over all chains of the run. Sums are of integers, so the result is the same on any number
 * of ranks. Collective over all ranks. Errors, agreed: EM_EMEMORY. */
em_status em_lda_pool_priors(const em_lda_learned *learned, double *theta);
