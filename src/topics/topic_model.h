/*
 * What the topic models for stochastic gradients share (lda_expanded.c, pfa.c, dpfa.c). The word
 * distributions phi of their topics are parameters, and the topics of tokens are drawn for every
 * gradient. They share the corpus and the test documents, these draws, and what is reported.
 */
#pragma once

#include "base/memory.h"
#include "data/corpus/corpus.h"
#include "emass/model.h"
#include "emass/model/averages.h"
#include "emass/model/counts.h"
#include "emass/model/latent.h"
#include "topics/lda_local.h"
#include "topics/topic_options.h"
#include "topics/topic_parameters.h"
#include "topics/topic_record.h"

#include <stdbool.h>
#include <stdio.h>

enum { EM_TOPIC_OWN = 2 }; /* the largest number of a model's own variables */

typedef struct em_topic_model em_topic_model;

/* What one of these models has besides phi, the first of its blocks; all NULL in a model that has
 * no other parameters. theta [dim] and gradient [dim] are those of a chain. All Local. */
typedef struct em_topic_kind {
    /* Adds the log prior of the other parameters, and its gradient. */
    void (*add_prior)(em_topic_model *self, const double *theta, double *density, double *gradient);
    /* Adds that log prior alone. */
    void (*add_log_prior)(em_topic_model *self, const double *theta, double *density);
    /* Sets self->weight. Returns whether all parameters but those of phi are finite. */
    bool (*set_weights)(em_topic_model *self, const double *theta);
    /* Calls em_local_sample with a query whose alpha is self->weight, and sums of count and
     * density, after it has added to both what its own gradient needs. */
    em_status (*sample)(em_topic_model *self, const double *theta, double *gradient,
                        em_local_query *query, em_local_sums *sums);
    /* Replaces the sums for the other parameters by their gradient, in place. */
    void (*finish)(em_topic_model *self, const double *theta, double *gradient);
    /* Sets the other parameters of a start. */
    void (*start)(const em_topic_model *self, const em_draw *draw, double *theta);
    /* Writes the model's own variables, and returns the end of them; NULL: it has none. */
    double *(*report)(em_topic_model *self, const double *theta, double *out);
    bool has_hyper; /* the likelihood does not depend on the last block */
} em_topic_kind;

/* The first member of a topic model for stochastic gradients. */
struct em_topic_model {
    em_model model;
    em_owner memory; /* of its arrays */
    const em_topic_kind *kind;
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
    double *weight;  /* [n_topic] the prior of the topics of documents */
    uint16_t *topic; /* [n_chain][em_local_n_token] topics for warm starts; NULL: none */
};

/* Reads the data and sets all members of a model; its ops must be set and the rest zero. `options`
 * outlive it. Collective. Errors: those of em_corpus_read and em_local_create. */
em_status em_topic_model_open(em_topic_model *self, const em_topic_kind *kind,
                              const em_topic_options *options, const em_model_context *context);

/* Sets the number of parameters, dim, and their blocks [n_block]. Adds the common variables after
 * the model's own in self->variable, and before them the weights of topics, if they are
 * parameters. Local. */
void em_topic_model_declare(em_topic_model *self, int64_t dim, int n_block,
                            const em_parameters *block);

/* em_model_ops.create of model lda for stochastic gradients (lda_expanded.c), with `alpha` as the
 * prior of each document's weights (NAN: EM_LDA_ALPHA). `options` outlive the model. */
em_status em_lda_expanded_create(const em_topic_options *options, double alpha,
                                 const em_model_context *context, em_model **out);

/* Members of em_model_ops. All but `describe` and `counts` are in EM_TOPIC_MODEL; models of Poisson
 * factor analysis have all of EM_POISSON_MODEL. Collective and Local as there. */
void em_topic_model_destroy(em_model *model);
em_status em_topic_model_add_prior(em_model *model, const em_query *query);
em_status em_topic_model_add_likelihood(em_model *model, const em_query *query);
void em_topic_model_finish(em_model *model, const em_query *sums);
em_status em_topic_model_start(em_model *model, const em_draw *draw, double *theta);
em_status em_topic_model_report(em_model *model, const em_draw *draw, const double *theta,
                                double *out);
void em_topic_model_describe(const em_model *model, FILE *out);
extern const em_model_latent em_topic_model_latent;
extern const em_model_averages em_topic_model_averages;
extern const em_model_counts em_topic_model_all_counts; /* all likelihoods are from counts */
#define EM_TOPIC_MODEL                                                                             \
    .destroy = em_topic_model_destroy, .add_prior = em_topic_model_add_prior,                      \
    .report = em_topic_model_report, .start = em_topic_model_start,                                \
    .add_likelihood = em_topic_model_add_likelihood, .latent = &em_topic_model_latent,             \
    .averages = &em_topic_model_averages
#define EM_POISSON_MODEL                                                                           \
    EM_TOPIC_MODEL, .sampler = "msgnht", .create = em_model_build, .prior = &em_topic_no_prior,    \
                    .describe = em_topic_model_describe, .counts = &em_topic_model_all_counts
