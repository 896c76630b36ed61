/*
 * The topics of latent Dirichlet allocation (EQUATIONS 22) given the topics of all tokens: their
 * word distributions, and the hyperparameters. Everything is computed from counts of all documents,
 * which are integers. All Local.
 */
#pragma once

#include "emass/status.h"
#include "math/rng.h"

#include <stdbool.h>
#include <stdint.h>

/* From so many topics on documents keep lists of their topics, and laws of words are drawn by
 * jumps: a rule by the size of the model alone, so that it is the same on all ranks. */
enum { EM_MANY_TOPICS = 192 };

typedef struct em_lda_shape {
    int64_t n_word, n_topic, stride; /* em_topic_stride(n_topic) */
    bool jumps; /* gamma variates of a small beta are drawn as jumps of a gamma process */
} em_lda_shape;

/* Words first .. end - 1: whatever goes over all words and topics may be shared between the shards,
 * as what is added of them are integers. Arrays `count` hold these words alone, [words][stride]. */
typedef struct em_lda_words {
    int64_t first, end;
} em_lda_words;

/* Those of a shard. */
em_lda_words em_lda_own_words(int64_t n_word, int64_t shard, int64_t n_shard);

/*
 * phi_k ~ Dirichlet(beta + n_k.), for all topics: phi [n_word][stride] from count [words][stride],
 * in two steps. The first one draws the weights of some words, counted by (seed, chain, iteration),
 * and writes total [n_topic], their sums in units of their own; the other divides those of some
 * words by the sums over all. None is below 1e-30, so that every word has a topic. With `jumps`,
 * and beta at most 1/32, Gamma(beta + n) is drawn as Gamma(n) and the jumps of a gamma process of
 * length beta (math/rng.h) that are larger than the unit in which weights are added, 2^-32: the
 * time then grows with the counts that are not 0 and with 25 beta topics a word. `room`
 * [em_stride(stride)] is room to work in.
 */
void em_lda_draw_weights(const em_lda_shape *shape, em_lda_words words, const em_stream *stream,
                         double beta, const int32_t *count, double *room, int64_t *total,
                         float *phi);
void em_lda_scale(const em_lda_shape *shape, em_lda_words words, const int64_t *total, double *room,
                  float *phi);

/* n_k over some words: total [n_topic]. */
void em_lda_total(const em_lda_shape *shape, em_lda_words words, const int32_t *count,
                  int64_t *total);

/* The mean of phi given the topics of all tokens: (beta + n_kv) / (V beta + n_k), for some words.
 * `room` [n_topic]. */
void em_lda_mean_phi(const em_lda_shape *shape, em_lda_words words, double beta,
                     const int32_t *count, const int64_t *total, double *room, float *phi);

/* log p(words | topics of all tokens, beta), phi integrated out: what some words add, in units of
 * EM_LDA_UNIT, and what the sums n_k do. */
int64_t em_lda_log_words(const em_lda_shape *shape, em_lda_words words, double beta,
                         const int32_t *count);
double em_lda_log_total(const em_lda_shape *shape, double beta, const int64_t *total);

/*
 * A step of Minka's fixed point (2000) for alpha, from the sums of lda_tokens.h at this alpha, and
 * for beta, from what em_lda_slope makes of the counts of all words at this beta, in units of
 * EM_LDA_UNIT. Values stay within 1e-6 .. 1e3.
 */
void em_lda_learn_alpha(int64_t n_topic, const int64_t *sums, double *alpha);
int64_t em_lda_slope(const em_lda_shape *shape, em_lda_words words, double beta,
                     const int32_t *count);
double em_lda_learn_beta(const em_lda_shape *shape, const int64_t *total, int64_t slope,
                         double beta);
