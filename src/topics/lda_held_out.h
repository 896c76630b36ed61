/*
 * A score on documents that were not trained on, by document completion. Every token is scored with
 * probability 1/5, by random numbers that do not depend on the run; where there is a second corpus,
 * its tokens are scored instead. The other tokens are folded in: from phi alone, by EM
 * (math/simd/tokens.h), 100 steps with alpha 0.1. Probabilities of words are at least 1e-12.
 * Perplexity is exp of minus the mean log probability of the scored tokens. All Local.
 */
#pragma once

#include "data/corpus/corpus.h"
#include "topics/lda_fold_in.h"
#include "topics/lda_topics.h"

#include <stdbool.h>
#include <stdint.h>

/* The definition, in one line for people; where the tokens to be scored are given, the second. */
#define EM_HELD_OUT_DOC                                                                            \
    "document completion: of each test document a fifth of the tokens is scored, the rest folded " \
    "in from phi by 100 steps of EM with alpha 0.1"
#define EM_HELD_OUT_GIVEN_DOC                                                                      \
    "document completion: each test document is folded in from phi by 100 steps of EM with alpha " \
    "0.1, and the tokens given for it are scored"
#define EM_HELD_OUT_GIBBS_DOC                                                                      \
    "the same tokens, the rest folded in by the model's own Gibbs: 20 sweeps given phi and "       \
    "alpha, "                                                                                      \
    "weights averaged over the last 10"

/* Entries of document d: fold_start[d] <= i < fold_start[d + 1], and score_start likewise. */
typedef struct em_held_out {
    int64_t n_document, n_score; /* entries that are scored */
    int64_t n_token;             /* tokens that are scored */
    bool is_first;               /* of the shards */
    int64_t first, end;          /* documents that this shard scores, first <= d < end, and */
    int64_t first_score, n_own;  /* their entries that are scored */
    int64_t *fold_start, *score_start;
    int32_t *fold_word, *score_word;
    float *fold_count, *score_count;
    float *rows, *mixture; /* room to work in */
    em_fold_in *gibbs;     /* NULL: by EM alone */
} em_held_out;

/* From what the test documents are folded in: phi [n_word][stride], and by the model's own Gibbs
 * (topics/lda_fold_in.h) where there is a stream, with alpha [n_topic]; else by EM. */
typedef struct em_held_out_law {
    const float *phi;
    const em_stream *stream;
    const double *alpha;
} em_held_out_law;

/* All documents of `corpus`, with room for topics of this shape; shard `shard` of `n_shard` scores
 * its share of them. `scored` NULL: their tokens are split; else those of its documents, which are
 * as many, are scored. Errors: EM_EMEMORY. */
em_status em_held_out_create(const em_corpus *corpus, const em_corpus *scored,
                             const em_lda_shape *shape, int64_t shard, int64_t n_shard,
                             em_held_out **out);
void em_held_out_destroy(em_held_out **held_out); /* NULL-safe. */

/*
 * Scores this shard's documents: returns the sum of log probabilities of their scored tokens in
 * units of 2^-20, an integer, and averages the probability of each entry into average [n_own], of
 * which `n` are averaged so far; *averaged is the same sum for the averages.
 */
int64_t em_held_out_score(const em_held_out *held_out, const em_lda_shape *shape,
                          const em_held_out_law *law, int64_t n, double *average,
                          int64_t *averaged);

/* Makes ready for laws with a stream. Errors: EM_EMEMORY. */
em_status em_held_out_with_gibbs(em_held_out *held_out, const em_lda_shape *shape);

/*
 * Perplexity with each entry's probability averaged over the draws of each chain, and then over all
 * chains of the run, before the logarithm: probability[n_chain] are this rank's chains' averages.
 * Sums are of integers, the same on any number of ranks. Collective over the world. Errors, agreed:
 * EM_EMEMORY.
 */
em_status em_held_out_pool(const em_held_out *held_out, int64_t n_chain, double *const *probability,
                           double *perplexity);

/* exp(-sum / tokens) of such a sum over all shards. */
double em_held_out_perplexity(const em_held_out *held_out, int64_t sum);
