/*
 * Folding in: estimates the topic weights of a document outside the training data, with phi and
 * alpha fixed, in one of two ways. EM (math/simd/tokens.h) takes EM_FOLD_IN_STEPS steps, and is the
 * same for everyone. The Gibbs sampler of the model draws the topics of the document's tokens as in
 * training,
 *
 *     z_j | z of its other tokens ~ (alpha_k + n_dk) phi_{k, w_j},
 *
 * for EM_FOLD_IN_SWEEPS sweeps, which start with tokens without topics. The weights are the mean
 * over the later half of (alpha_k + n_dk) / (A + n_d), A = sum_k alpha_k. The key of the random
 * numbers is (seed, chain, iteration, document). All Local.
 */
#pragma once

#include "emass/status.h"
#include "math/rng.h"

#include <stdint.h>

enum { EM_FOLD_IN_SWEEPS = 20, EM_FOLD_IN_STEPS = 100 };

typedef struct em_fold_in em_fold_in;

/* Creates a sampler for documents of up to `most` tokens. Errors: EM_EMEMORY. */
em_status em_fold_in_create(int64_t n_topic, int64_t most, em_fold_in **out);
void em_fold_in_destroy(em_fold_in **fold_in); /* NULL-safe. */

/* The stream of random numbers; its purpose is EM_RNG_FOLD_IN. */
em_stream em_fold_in_stream(uint64_t seed, int64_t chain, int64_t iteration);

/* A document of n different words. Word i occurs count[i] times; its probability in topic k is
 * phi[i * stride + k], with padding 0 (em_topic_stride). */
typedef struct em_folded {
    int64_t number, n;
    const float *count, *phi;
} em_folded;

/* Computes the weights mixture [n_topic], which sum to one, by Gibbs. */
void em_fold_in_gibbs(em_fold_in *fold_in, const em_stream *stream, const em_folded *document,
                      const double *alpha, float *mixture);

/* Computes the weights by EM. They are at the beginning of mixture [EM_FOLD_IN_ROOM][stride]; they
 * do not sum to one. */
enum { EM_FOLD_IN_ROOM = 3 };
void em_fold_in_em(int64_t n_topic, const em_folded *document, const double *alpha, float *mixture);
