/*
 * Folding in: estimates the topic weights of a document outside the training data, with phi and
 * alpha fixed. There are two ways. EM (math/simd/tokens.h) takes EM_FOLD_IN_STEPS steps, and has no
 * random numbers. The Gibbs sampler draws the topics z of the document's tokens as in training,
 *
 *     z_j | z of its other tokens ~ (alpha_k + n_dk) phi_{k, w_j},
 *
 * for EM_FOLD_IN_SWEEPS sweeps. Before the first one no token has a topic. The weights are the
 * means of (alpha_k + n_dk) / (A + n_d) over the later half of the sweeps, A = sum_k alpha_k. n_dk
 * is the number of the document's tokens in topic k, n_d that of all its tokens. The key of the
 * random numbers is (seed, chain, iteration, document). All Local.
 */
#pragma once

#include "base/memory.h"
#include "emass/status.h"
#include "math/rng.h"

#include <stdint.h>

enum { EM_FOLD_IN_SWEEPS = 20, EM_FOLD_IN_STEPS = 100 };

typedef struct em_fold_in em_fold_in;

/* Creates a sampler for documents of up to `most` tokens. Errors: EM_EMEMORY. */
em_status em_fold_in_create(em_owner *owner, int64_t n_topic, int64_t most, em_fold_in **out);

/* The stream of random numbers for folding in; its purpose is EM_RNG_FOLD_IN. */
em_stream em_fold_in_stream(uint64_t seed, int64_t chain, int64_t iteration);

/* A document to be folded in. Rows of phi have stride = em_topic_stride(n_topic) numbers. */
typedef struct em_folded {
    int64_t number, n;  /* in the corpus; different words */
    const float *count; /* [n] occurrences of each word */
    const float *phi;   /* [n][stride] probability of each word in each topic; padding 0 */
} em_folded;

/* Computes the weights mixture [n_topic], which sum to one, by Gibbs sampling with alpha [n_topic].
 * The document has at most as many tokens as em_fold_in_create was told. */
void em_fold_in_gibbs(em_fold_in *fold_in, const em_stream *stream, const em_folded *document,
                      const double *alpha, float *mixture);

/* Computes the weights by EM with alpha [n_topic]. The first n_topic numbers of mixture
 * [EM_FOLD_IN_ROOM][stride] are alpha_k + the expected n_dk, so they sum to A + n_d; the others are
 * work space. */
enum { EM_FOLD_IN_ROOM = 3 };
void em_fold_in_em(int64_t n_topic, const em_folded *document, const double *alpha, float *mixture);
