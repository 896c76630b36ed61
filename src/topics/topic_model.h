/*
 * Common parts of the topic models for stochastic gradients (lda_expanded.c, pfa.c, dpfa.c), in
 * which the word distributions of topics are parameters: a corpus and test documents, the topics of
 * tokens that are drawn for every gradient, the reported quantities, and work space.
 */
#pragma once

#include "data/corpus/corpus.h"
#include "emass/model.h"
#include "emass/model/latent.h"
#include "topics/lda_local.h"
#include "topics/topic_options.h"
#include "topics/topic_parameters.h"
#include "topics/topic_record.h"

#include <stdbool.h>
#include <stdio.h>

enum { EM_TOPIC_OWN = 2 }; /* variables of a model's own, at most */

/* First member of such a model. */
typedef struct em_topic_model {
    em_model model;
    const em_topic_options *options;
    em_corpus *corpus;
    em_local *local;
    em_topic_parameters topics;
    em_topic_record *record;
    int64_t first_chain, n_chain;
    em_variable variable[EM_TOPIC_OWN + EM_TOPIC_VARIABLES], average[EM_TOPIC_AVERAGES];
    float *phi;      /* [n_word][stride] room */
    double *count;   /* [n_chain][n_topic] tokens of the last evaluation in each topic */
    double *density; /* [n_chain] log likelihood a token of the last evaluation */
    uint16_t *topic; /* [n_chain][n_token] of warm starts; NULL: none */
} em_topic_model;

/* Reads the data and makes the rest, of a model whose ops are set and all else is zero. `options`
 * outlive it. Collective. Errors: those of em_corpus_read and em_local_create. */
em_status em_topic_model_open(em_topic_model *self, const em_topic_options *options,
                              const em_model_context *context);
void em_topic_model_close(em_topic_model *self);

/* Sizes, blocks and, behind those of its own, variables. Local. */
void em_topic_model_declare(em_topic_model *self, int64_t dim, int n_block,
                            const em_parameters *block);

/* Whether the gradient by these parameters is wanted. Local. */
bool em_topic_model_wants(const em_query *query, const em_parameters *block);

/* Of one of this rank's chains: its topics for warm starts; NULL: none. Local. */
uint16_t *em_topic_model_warm(const em_topic_model *self, int64_t chain);

/* Topics begin, and phi's parameters do. Local. */
void em_topic_model_place(const em_topic_model *self, const em_draw *draw, double *theta);

/* What becomes of the sums that are not phi's in the gradient of one chain. */
typedef void em_topic_slope(em_topic_model *self, const double *theta, double *gradient);

/* Sums over sweeps and documents become the log likelihood, and those of phi its gradient, those of
 * others by `others` (NULL: there are none); what is told of the chains' topics is kept. Local. */
void em_topic_model_finish(em_topic_model *self, const em_query *sums, em_topic_slope *others);

/* The log density, but for the priors of a model's own parameters: the likelihood is that of all
 * tokens, were they as those of the last evaluation. Local. */
double em_topic_model_density(em_topic_model *self, int64_t chain, const double *theta);

/* Where an iteration has left chain number c of the panel. Collective over the ranks of a group. */
em_status em_topic_model_take(em_topic_model *self, const em_update *after, int64_t c,
                              double log_density, const double *alpha);

/* The variables that em_topic_model_declare adds. Local. */
void em_topic_model_report(em_topic_model *self, int64_t chain, const double *theta, double *out);

/* em_model_ops.create of model lda for stochastic gradients (lda_expanded.c), with `alpha` as the
 * prior of each document's weights. `options` outlive the model. */
em_status em_lda_expanded_create(const em_topic_options *options, double alpha,
                                 const em_model_context *context, em_model **out);

/* em_model_ops of the same names. */
em_status em_topic_model_pool_averages(em_model *model);
void em_topic_model_report_averages(em_model *model, int64_t chain, double *out);
em_status em_topic_model_visit(em_model *model, const em_visitor *visitor);
void em_topic_model_describe(const em_model *model, FILE *out);
