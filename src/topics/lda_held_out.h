/*
 * A score on held-out documents, by document completion: some tokens of a document are folded in
 * (topics/lda_fold_in.h), and the others are scored by their probabilities given the topic weights.
 * Every token is scored with probability 1/5, by random numbers that do not depend on the run. If
 * there is a second corpus, its tokens are scored, and all tokens of the first are folded in. EM
 * takes the model's own alpha or a given one. Probabilities of words are at least 1e-12. Perplexity
 * is exp of minus the mean log probability of the scored tokens. All Local, but where noted.
 */
#pragma once

#include "data/corpus/corpus.h"
#include "topics/lda_fold_in.h"
#include "topics/lda_topics.h"

#include <stdbool.h>
#include <stdint.h>

/* Writes the definition of the score by EM as a line of text. `given`: the scored tokens are those
 * of a second corpus. `alpha` is that of EM; NAN: the model's own. */
enum { EM_HELD_OUT_DOC_SIZE = 192 };
void em_held_out_define(bool given, double alpha, char doc[EM_HELD_OUT_DOC_SIZE]);
/* The definition of the score by Gibbs sampling. */
#define EM_HELD_OUT_GIBBS_DOC                                                                      \
    "the same tokens, the rest folded in by the model's own Gibbs: 20 sweeps given phi and "       \
    "alpha, weights averaged over the last 10"

/* The held-out documents. An entry is a word of a document with its count. Entries of document d
 * are fold_start[d] <= i < fold_start[d + 1] of those that are folded in, and score_start[d] <= i <
 * score_start[d + 1] of those that are scored. */
typedef struct em_held_out {
    int64_t n_document, n_score; /* documents; entries that are scored */
    int64_t n_token;             /* tokens that are scored */
    bool is_first;               /* whether this is the first shard */
    int64_t first, end;          /* this shard scores documents first .. end - 1 */
    int64_t first_score,
        n_own; /* the scored entries of these documents: first_score .. first_score + n_own - 1 */
    int64_t *fold_start, *score_start; /* [n_document + 1] */
    int32_t *fold_word, *score_word;
    float *fold_count, *score_count;
    float *rows, *mixture; /* work space: phi of a document's words, and its topic weights */
    em_fold_in *gibbs;     /* NULL: EM only */
} em_held_out;

/* The parameters of the model for folding in. */
typedef struct em_held_out_parameters {
    const float *phi;        /* [n_word][stride] */
    const em_stream *stream; /* random numbers of the Gibbs sampler; NULL: EM */
    const double *alpha;     /* [n_topic] */
} em_held_out_parameters;

/* Creates the score of the documents of `corpus`, for topics of this shape. Shard `shard` of
 * `n_shard` scores its share of the documents. `scored` is the second corpus, with the same number
 * of documents; NULL: the tokens of each document are split. Errors: EM_EMEMORY. */
em_status em_held_out_create(em_owner *owner, const em_corpus *corpus, const em_corpus *scored,
                             const em_lda_shape *shape, int64_t shard, int64_t n_shard,
                             em_held_out **out);

/*
 * Scores this shard's documents. Returns the sum of the log probabilities of their scored tokens,
 * as an integer in units of 2^-20. average [n_own] has the mean of the probability of each scored
 * entry over `n` earlier draws, and is updated to that over n + 1. *averaged is the sum for these
 * means, in the same units.
 */
int64_t em_held_out_score(const em_held_out *held_out, const em_lda_shape *shape,
                          const em_held_out_parameters *parameters, int64_t n, double *average,
                          int64_t *averaged);

/* Allocates what em_held_out_parameters.stream needs. Errors: EM_EMEMORY. */
em_status em_held_out_with_gibbs(em_owner *owner, em_held_out *held_out, const em_lda_shape *shape);

/*
 * The perplexity with each entry's probability averaged over the draws of each chain and then over
 * all chains of the run, before the logarithm. probability [n_chain] has the averages of this
 * rank's chains. Sums are of integers, so the result is the same on any number of ranks. Collective
 * over all ranks. Errors, agreed: EM_EMEMORY.
 */
em_status em_held_out_pool(const em_held_out *held_out, int64_t n_chain, double *const *probability,
                           double *perplexity);

/* The perplexity for the sum over all shards of what em_held_out_score returns. */
double em_held_out_perplexity(const em_held_out *held_out, int64_t sum);
