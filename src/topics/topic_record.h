/*
 * What a topic model reports of each chain: the log density, the shares of topics, a score on test
 * documents, and averages over the draws (phi, shares, priors). A record is for the chains of one
 * rank.
 */
#pragma once

#include "base/memory.h"
#include "data/corpus/corpus.h"
#include "emass/model.h"
#include "emass/model/latent.h"
#include "emass/model/prior.h"
#include "topics/topic_options.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct em_topic_record em_topic_record;

/* Creates a record for the words of `corpus`, which it borrows. Reads the test documents: every
 * shard holds all of them and scores its share. The hash of the test data is added to *hash.
 * Collective. Errors, agreed: EM_EDATA, EM_EMEMORY. */
em_status em_topic_record_create(em_owner *owner, const em_topic_options *options,
                                 const em_model_context *context, const em_corpus *corpus,
                                 uint64_t *hash, em_topic_record **out);

/* Computes the hash that em_topic_record_create adds, 0 without test documents. This rank reads
 * them, and holds a few at a time. Local. Errors: EM_EDATA, EM_EMEMORY. */
em_status em_topic_test_hash(const em_topic_options *options, int64_t n_word, uint64_t *hash);

/* The memory of each chain in bytes. Local. */
double em_topic_record_chain_bytes(const em_topic_record *record);

/* Adds its variables and averages to those of the model: at most EM_TOPIC_VARIABLES and
 * EM_TOPIC_AVERAGES. Local. */
enum { EM_TOPIC_VARIABLES = 5, EM_TOPIC_AVERAGES = 8 };
void em_topic_record_declare(const em_topic_record *record, em_model *model, em_variable *variable,
                             em_variable *average);

/* Prints lines about the corpus, the n_document documents and n_token tokens of this shard, and the
 * score of test documents. Local. */
void em_topic_record_describe(const em_topic_record *record, int64_t n_document, int64_t n_token,
                              FILE *out);

/* The state of a chain after an iteration. */
typedef struct em_chain_topics {
    int64_t chain; /* number in the run */
    double log_density;
    const float *phi;    /* [n_word][stride]; set for all words if em_topic_record_wants_all,
                            else for the words of this shard */
    const double *count; /* [n_topic] tokens in each topic, of some or all documents */
    const double *alpha; /* [n_topic] */
    double beta;
} em_chain_topics;

/* Records the state: computes the shares, the score if it is due, and the averages. Collective over
 * the ranks of a group. */
em_status em_topic_record_take(em_topic_record *record, const em_update *after,
                               const em_chain_topics *state);

/* Whether the next em_topic_record_take reads phi; whether it reads phi of all words. Local. */
bool em_topic_record_wants_phi(const em_topic_record *record, const em_update *after);
bool em_topic_record_wants_all(const em_topic_record *record, const em_update *after);

/* Whether reports of draws include phi. Local. */
bool em_topic_record_stores_phi(const em_topic_record *record);

/* Writes the variables of a chain to `out`, with phi [n_word][stride] if phi is stored. Local. */
void em_topic_record_report(const em_topic_record *record, int64_t chain, const float *phi,
                            double *out);

/* em_model_averages.pool and .report. */
em_status em_topic_record_pool(em_topic_record *record);
void em_topic_record_report_averages(const em_topic_record *record, int64_t chain, double *out);

/* Passes the averages and scores so far to a visitor, for a checkpoint. Collective. */
em_status em_topic_record_visit(em_topic_record *record, const em_visitor *visitor);

/* em_model_ops.prior: why there are no draws from it. */
extern const em_model_prior em_topic_no_prior;

/* Sorts weight [n] by size, the largest first, so that chains with permuted topics are comparable.
 * Local. */
void em_topic_order(int64_t n, double *weight);
