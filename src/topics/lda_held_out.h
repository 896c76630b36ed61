/*
 * A score on held-out documents, by document completion. Every token is scored with probability
 * 1/5, by random numbers that do not depend on the run. If there is a second corpus, its tokens are
 * scored instead. The other tokens are folded in by EM (topics/lda_fold_in.h), with the model's own
 * alpha or a given one. Probabilities of words are at least 1e-12. Perplexity is exp of minus the
 * mean log probability of the scored tokens. All Local.
 */
#pragma once

#include "data/corpus/corpus.h"
#include "topics/lda_fold_in.h"
#include "topics/lda_topics.h"

#include <stdbool.h>
#include <stdint.h>

/* Writes the definition as a line of text: whether the scored tokens are given, and the alpha of EM
 * (NAN: the model's own). */
enum { EM_HELD_OUT_DOC_SIZE = 192 };
void em_held_out_define(bool given, double alpha, char doc[EM_HELD_OUT_DOC_SIZE]);
#define EM_HELD_OUT_GIBBS_DOC                                                                      \
    "the same tokens, the rest folded in by the model's own Gibbs: 20 sweeps given phi and "       \
    "alpha, "                                                                                      \
    "weights averaged over the last 10"

/* Entries of document d: fold_start[d] <= i < fold_start[d + 1], and score_start likewise. */
typedef struct em_held_out {
    int64_t n_document, n_score; /* entries that are scored */
    int64_t n_token;             /* tokens that are scored */
    bool is_first;               /* of the shards */
    int64_t first, end;          /* this shard scores documents first <= d < end, and */
    int64_t first_score, n_own;  /* their entries that are scored */
    int64_t *fold_start, *score_start;
    int32_t *fold_word, *score_word;
    float *fold_count, *score_count;
    float *rows, *mixture; /* work space */
    em_fold_in *gibbs;     /* NULL: EM only */
} em_held_out;

/* The quantities for folding in: phi [n_word][stride]. With a stream, documents are folded in by
 * the model's Gibbs sampler (topics/lda_fold_in.h); otherwise by EM. alpha has [n_topic] numbers.
 */
typedef struct em_held_out_law {
    const float *phi;
    const em_stream *stream;
    const double *alpha;
} em_held_out_law;

/* Creates the score of the documents of `corpus`, for topics of this shape. Shard `shard` of
 * `n_shard` scores its share of the documents. `scored` NULL: the tokens of each document are
 * split; otherwise `scored` has the same number of documents, whose tokens are scored. Errors:
 * EM_EMEMORY. */
em_status em_held_out_create(const em_corpus *corpus, const em_corpus *scored,
                             const em_lda_shape *shape, int64_t shard, int64_t n_shard,
                             em_held_out **out);
void em_held_out_destroy(em_held_out **held_out); /* NULL-safe. */

/*
 * Scores this shard's documents. Returns the sum of the log probabilities of their scored tokens,
 * as an integer in units of 2^-20. Updates average [n_own], the mean over draws of the probability
 * of each entry, from `n` earlier draws; *averaged is the same sum for these means.
 */
int64_t em_held_out_score(const em_held_out *held_out, const em_lda_shape *shape,
                          const em_held_out_law *law, int64_t n, double *average,
                          int64_t *averaged);

/* Allocates what em_held_out_law.stream needs. Errors: EM_EMEMORY. */
em_status em_held_out_with_gibbs(em_held_out *held_out, const em_lda_shape *shape);

/*
 * The perplexity with each entry's probability averaged over the draws of each chain and then over
 * all chains of the run, before the logarithm. probability [n_chain] has the averages of this
 * rank's chains. Sums are of integers, so the result is the same on any number of ranks. Collective
 * over all ranks. Errors, agreed: EM_EMEMORY.
 */
em_status em_held_out_pool(const em_held_out *held_out, int64_t n_chain, double *const *probability,
                           double *perplexity);

/* The perplexity exp(-sum / tokens) for a sum over all shards. */
double em_held_out_perplexity(const em_held_out *held_out, int64_t sum);
