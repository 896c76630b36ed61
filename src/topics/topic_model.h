/*
 * What the topic models for stochastic gradients share (lda_expanded.c, pfa.c, dpfa.c). The word
 * distributions phi of their topics are parameters, and the topics of tokens are drawn for every
 * gradient. They share the corpus and the test documents, these draws, and what is reported.
 */
#pragma once

#include "data/corpus/corpus.h"
#include "emass/model.h"
#include "emass/model/averages.h"
#include "emass/model/latent.h"
#include "topics/lda_local.h"
#include "topics/topic_options.h"
#include "topics/topic_parameters.h"
#include "topics/topic_record.h"

#include <stdbool.h>
#include <stdio.h>

enum { EM_TOPIC_OWN = 2 }; /* the largest number of a model's own variables */

/* The first member of a topic model for stochastic gradients. */
typedef struct em_topic_model {
    em_model model;
    const em_topic_options *options;
    em_corpus *corpus;
    em_local *local;
    em_topic_parameters topics;
    em_topic_record *record;
    int64_t first_chain, n_chain; /* of this rank */
    em_variable variable[EM_TOPIC_OWN + EM_TOPIC_VARIABLES], average[EM_TOPIC_AVERAGES];
    float *phi;      /* [n_word][stride] work space */
    double *count;   /* [n_chain][n_topic] tokens in each topic, at the last evaluation */
    double *density; /* [n_chain] log likelihood per token, at the last evaluation */
    uint16_t *topic; /* [n_chain][em_local_n_token] topics for warm starts; NULL: none */
} em_topic_model;

/* Reads the data and sets all members of a model; its ops must be set and the rest zero. `options`
 * outlive it. Collective. Errors: those of em_corpus_read and em_local_create. */
em_status em_topic_model_open(em_topic_model *self, const em_topic_options *options,
                              const em_model_context *context);
void em_topic_model_close(em_topic_model *self);

/* Sets the number of parameters, dim, and their blocks [n_block]. Adds the common variables after
 * the model's own in self->variable. Local. */
void em_topic_model_declare(em_topic_model *self, int64_t dim, int n_block,
                            const em_parameters *block);

/* Whether the query needs the gradient with respect to these parameters. Local. */
bool em_topic_model_wants(const em_query *query, const em_parameters *block);

/* The topics [em_local_n_token] of a chain of this rank, for warm starts; NULL: none. Local. */
uint16_t *em_topic_model_warm(const em_topic_model *self, int64_t chain);

/* Sets the initial values of the parameters of phi, and removes the topics for warm starts. Local.
 */
void em_topic_model_start(const em_topic_model *self, const em_draw *draw, double *theta);

/* Replaces the sums of one chain for parameters other than those of phi by their gradient, in place
 * in gradient [dim]. */
typedef void em_topic_slope(em_topic_model *self, const double *theta, double *gradient);

/* Replaces the sums over sweeps and documents in sums->log_density and sums->gradient by the log
 * likelihood and its gradient. `others` does so for parameters other than those of phi; NULL: there
 * are none. Stores `count` and `density` of each chain for reports. Local. */
void em_topic_model_finish(em_topic_model *self, const em_query *sums, em_topic_slope *others);

/* The log likelihood and the log prior of the parameters of phi; the prior of other parameters is
 * not included. The log likelihood per token of the last evaluation stands for that of all tokens.
 * Local. */
double em_topic_model_density(em_topic_model *self, int64_t chain, const double *theta);

/* Records the state after an iteration of the c-th of the chains of `after`. alpha [n_topic].
 * Collective over the ranks of a group. Errors: those of em_topic_record_take. */
em_status em_topic_model_take(em_topic_model *self, const em_update *after, int64_t c,
                              double log_density, const double *alpha);

/* Writes the variables that em_topic_model_declare adds. Local. */
void em_topic_model_report(em_topic_model *self, int64_t chain, const double *theta, double *out);

/* em_model_ops.create of model lda for stochastic gradients (lda_expanded.c), with `alpha` as the
 * prior of each document's weights (NAN: EM_LDA_ALPHA). `options` outlive the model. */
em_status em_lda_expanded_create(const em_topic_options *options, double alpha,
                                 const em_model_context *context, em_model **out);

/* Members of em_model_ops and of the capabilities of a model, by these names. */
extern const em_model_averages em_topic_model_averages;
em_status em_topic_model_visit(em_model *model, const em_visitor *visitor);
void em_topic_model_describe(const em_model *model, FILE *out);
