/*
 * Common parts of the topic models for stochastic gradients (lda_expanded.c, pfa.c, dpfa.c), in
 * which the word distributions of topics are parameters. The parts are a corpus and test documents,
 * the topics of tokens, which are drawn for every gradient, the reported quantities, and work
 * space.
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

enum { EM_TOPIC_OWN = 2 }; /* the largest number of a model's own variables */

/* The first member of a topic model for stochastic gradients. */
typedef struct em_topic_model {
    em_model model;
    const em_topic_options *options;
    em_corpus *corpus;
    em_local *local;
    em_topic_parameters topics;
    em_topic_record *record;
    int64_t first_chain, n_chain;
    em_variable variable[EM_TOPIC_OWN + EM_TOPIC_VARIABLES], average[EM_TOPIC_AVERAGES];
    float *phi;      /* [n_word][stride] work space */
    double *count;   /* [n_chain][n_topic] tokens of the last evaluation in each topic */
    double *density; /* [n_chain] log likelihood a token of the last evaluation */
    uint16_t *topic; /* [n_chain][n_token] topics for warm starts; NULL: none */
} em_topic_model;

/* Reads the data and sets all members of a model; its ops must be set and the rest zero. `options`
 * outlive it. Collective. Errors: those of em_corpus_read and em_local_create. */
em_status em_topic_model_open(em_topic_model *self, const em_topic_options *options,
                              const em_model_context *context);
void em_topic_model_close(em_topic_model *self);

/* Sets the sizes and blocks of the model, and adds variables after its own. Local. */
void em_topic_model_declare(em_topic_model *self, int64_t dim, int n_block,
                            const em_parameters *block);

/* Whether the query needs the gradient with respect to these parameters. Local. */
bool em_topic_model_wants(const em_query *query, const em_parameters *block);

/* The topics of a chain of this rank for warm starts; NULL: none. Local. */
uint16_t *em_topic_model_warm(const em_topic_model *self, int64_t chain);

/* Sets the initial values of the parameters of phi, and removes the topics for warm starts. Local.
 */
void em_topic_model_start(const em_topic_model *self, const em_draw *draw, double *theta);

/* Computes the gradient of one chain with respect to parameters other than phi from their sums. */
typedef void em_topic_slope(em_topic_model *self, const double *theta, double *gradient);

/* Replaces sums over sweeps and documents by the log likelihood and its gradient; `others` (NULL:
 * none) does so for parameters other than phi. Stores the quantities of the chains' topics for
 * reports. Local. */
void em_topic_model_finish(em_topic_model *self, const em_query *sums, em_topic_slope *others);

/* The log density without the priors of a model's own parameters. The likelihood is extrapolated
 * from the tokens of the last evaluation to all tokens. Local. */
double em_topic_model_density(em_topic_model *self, int64_t chain, const double *theta);

/* Records the state of chain c of the panel after an iteration. Collective over the ranks of a
 * group. */
em_status em_topic_model_take(em_topic_model *self, const em_update *after, int64_t c,
                              double log_density, const double *alpha);

/* Writes the variables that em_topic_model_declare adds. Local. */
void em_topic_model_report(em_topic_model *self, int64_t chain, const double *theta, double *out);

/* em_model_ops.create of model lda for stochastic gradients (lda_expanded.c), with `alpha` as the
 * prior of each document's weights (NAN: EM_LDA_ALPHA). `options` outlive the model. */
em_status em_lda_expanded_create(const em_topic_options *options, double alpha,
                                 const em_model_context *context, em_model **out);

/* The functions of em_model_ops and its capabilities that have these names. */
em_status em_topic_model_pool_averages(em_model *model);
void em_topic_model_report_averages(em_model *model, int64_t chain, double *out);
em_status em_topic_model_visit(em_model *model, const em_visitor *visitor);
void em_topic_model_describe(const em_model *model, FILE *out);
