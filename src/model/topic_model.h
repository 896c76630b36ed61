/*
 * What models of topics have in common whose laws of words are parameters that kernels with
 * stochastic gradients move (lda_expanded.c, pfa.c, dpfa.c): a corpus and test documents, topics of
 * tokens drawn for every gradient, what is told of them, and room to work in.
 */
#ifndef EM_MODEL_TOPIC_MODEL_H
#define EM_MODEL_TOPIC_MODEL_H

#include "data/corpus.h"
#include "emass/model.h"
#include "model/lda_local.h"
#include "model/topic_parameters.h"
#include "model/topic_record.h"

#include <stdbool.h>
#include <stdio.h>

enum { EM_TOPIC_OWN = 2 }; /* variables of a model's own, at most */

/* First member of such a model. */
typedef struct em_topic_model {
    em_model model;
    em_corpus *corpus;
    em_held_out *held_out; /* NULL: none */
    em_local *local;
    em_topic_parameters topics;
    em_topic_record *record;
    int64_t first_chain, n_chain;
    em_variable variable[EM_TOPIC_OWN + EM_TOPIC_VARIABLES], average[EM_TOPIC_AVERAGES];
    float *phi;      /* [n_word][stride] room */
    double *count;   /* [n_chain][n_topic] tokens of the last evaluation in each topic */
    uint16_t *topic; /* [n_chain][n_token] of warm starts; NULL: none */
} em_topic_model;

/* What their options say. `corpus` and `local` outlive the model. */
typedef struct em_topic_options {
    const em_corpus_options *corpus;
    const em_local_options *local;
    char *test; /* NULL: none */
    int64_t topics, test_every;
    bool store_phi;
    em_topic_form form;
    double beta, prior_mean, prior_sd;
} em_topic_options;

/* Reads the data and makes the rest, of a model whose ops are set and all else is zero. Collective.
 * Errors: those of em_corpus_read and em_local_create. */
em_status em_topic_model_open(em_topic_model *self, const em_topic_options *options,
                              const em_model_context *context);
void em_topic_model_close(em_topic_model *self);

/* Sizes, blocks and, behind those of its own, variables. Local. */
void em_topic_model_declare(em_topic_model *self, int64_t dim, int n_block,
                            const em_parameters *block);

/* Of one of this rank's chains: its topics for warm starts (NULL: none), and its tokens in each
 * topic. Local. */
int64_t em_topic_model_chain(const em_topic_model *self, int64_t chain);
uint16_t *em_topic_model_warm(const em_topic_model *self, int64_t chain);
double *em_topic_model_count(const em_topic_model *self, int64_t chain);

/* Topics begin, and phi's parameters do. Local. */
void em_topic_model_place(const em_topic_model *self, const em_draw *draw, double *theta);

/* Where an iteration has left chain number c of the panel. Collective over the ranks of a group. */
em_status em_topic_model_take(em_topic_model *self, const em_update *after, int64_t c,
                              double log_density, const double *alpha, double beta);

/* The variables that em_topic_model_declare adds. Local. */
void em_topic_model_report(em_topic_model *self, int64_t chain, const double *theta, double *out);

/* Puts weights into the order of their sizes, which is one for all chains. Local. */
void em_topic_model_order(int64_t n, double *weight);

/* em_model_ops of the same names. */
void em_topic_model_report_averages(em_model *model, int64_t chain, double *out);
em_status em_topic_model_visit(em_model *model, const em_visitor *visitor);
void em_topic_model_describe(const em_model *model, FILE *out);

#endif
