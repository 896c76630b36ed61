/*
 * The reported quantities of the topics of a chain: its log density, the shares of topics, a score
 * on test documents, and averages over the draws (phi, shares, priors). For the chains of one rank.
 */
#pragma once

#include "data/corpus/corpus.h"
#include "emass/model.h"
#include "emass/model/latent.h"
#include "emass/shards.h"
#include "topics/topic_options.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct em_topic_record em_topic_record;

/* For the words of `corpus`, which it borrows. Reads the test documents: every shard keeps all of
 * them, and scores those that are dealt to it. *hash is changed by what was read. Collective.
 * Errors, agreed: EM_EDATA, EM_EMEMORY. */
em_status em_topic_record_create(const em_topic_options *options, const em_model_context *context,
                                 const em_corpus *corpus, uint64_t *hash, em_topic_record **out);
void em_topic_record_destroy(em_topic_record **record); /* NULL-safe. */

/* Bytes that each chain takes. Local. */
double em_topic_record_chain_bytes(const em_topic_record *record);

/* Tells the model of its variables and averages, besides those it has already: there is room for
 * EM_TOPIC_VARIABLES more, and for EM_TOPIC_AVERAGES. Local. */
enum { EM_TOPIC_VARIABLES = 5, EM_TOPIC_AVERAGES = 8 };
void em_topic_record_declare(const em_topic_record *record, em_model *model, em_variable *variable,
                             em_variable *average);

/* The corpus, this shard's documents and their tokens, and how test documents are scored, in lines
 * for people. Local. */
void em_topic_record_describe(const em_topic_record *record, int64_t n_document, int64_t n_token,
                              FILE *out);

/* Where an iteration has left a chain. */
typedef struct em_topic_look {
    int64_t chain;
    double log_density;
    const float *phi;    /* [n_word][stride]; of the words that are dealt to this shard at least,
                            of all where em_topic_record_wants_all */
    const double *count; /* [n_topic] tokens, of some documents at least */
    const double *alpha; /* [n_topic] */
    double beta;
} em_topic_look;

/* Collective over the ranks of a group. */
em_status em_topic_record_take(em_topic_record *record, const em_update *after,
                               const em_topic_look *look);

/* Whether the next em_topic_record_take reads phi. Local. */
bool em_topic_record_wants_phi(const em_topic_record *record, const em_update *after);
bool em_topic_record_wants_all(const em_topic_record *record, const em_update *after);

/* Whether phi is among what it writes of a draw. Local. */
bool em_topic_record_stores_phi(const em_topic_record *record);

/* Writes the variables of a chain; phi, where it is stored, as given. Local. */
void em_topic_record_report(const em_topic_record *record, int64_t chain, const float *phi,
                            double *out);

/* em_model_averages.pool and .report. */
em_status em_topic_record_pool(em_topic_record *record);
void em_topic_record_report_averages(const em_topic_record *record, int64_t chain, double *out);

/* Collective. */
em_status em_topic_record_visit(em_topic_record *record, const em_visitor *visitor);

/* Puts weights into the order of their sizes, which is one for all chains. Local. */
void em_topic_order(int64_t n, double *weight);
