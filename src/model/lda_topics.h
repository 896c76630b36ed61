/*
 * The topics of latent Dirichlet allocation (EQUATIONS 22) given the topics of all tokens: their
 * laws of words, and the hyperparameters. Everything is made from counts of all documents, which
 * are integers. All Local.
 */
#ifndef EM_MODEL_LDA_TOPICS_H
#define EM_MODEL_LDA_TOPICS_H

#include "emass/status.h"

#include <stdint.h>

typedef struct em_lda_shape {
    int64_t n_word, n_topic, stride; /* em_topic_stride(n_topic) */
} em_lda_shape;

/*
 * phi_k ~ Dirichlet(beta + n_k.), for all topics: phi [n_word][stride] from count
 * [n_word][stride]. Counted by (seed, chain, iteration); not below 1e-30, so that every word has a
 * topic. `room` [em_stride(stride)] and total [n_topic] are room to work in.
 */
void em_lda_draw_phi(const em_lda_shape *shape, uint64_t seed, int64_t chain, int64_t iteration,
                     double beta, const int32_t *count, double *room, int64_t *total, float *phi);

/* Its mean given the topics of all tokens: (beta + n_kv) / (V beta + n_k). `total` is n_k then. */
void em_lda_mean_phi(const em_lda_shape *shape, double beta, const int32_t *count, int64_t *total,
                     float *phi);

/* log p(words | topics of all tokens, beta), phi integrated out. */
double em_lda_log_words(const em_lda_shape *shape, double beta, const int32_t *count,
                        int64_t *total);

/*
 * A step of Minka's fixed point (2000) for alpha, from the sums of lda_tokens.h at this alpha, and
 * for beta, from the counts. Values stay within 1e-6 .. 1e3.
 */
void em_lda_learn_alpha(int64_t n_topic, const int64_t *sums, double *alpha);
double em_lda_learn_beta(const em_lda_shape *shape, const int32_t *count, int64_t *total,
                         double beta);

#endif
