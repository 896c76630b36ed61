/*
 * Latent Dirichlet allocation for kernels of stochastic gradients: the topics' laws of words are
 * parameters (model/topic_parameters.h), the documents' topics are drawn anew for every gradient
 * (model/lda_local.h). Model lda is this one where its option `parameters` says so.
 */
#ifndef EM_MODEL_LDA_EXPANDED_H
#define EM_MODEL_LDA_EXPANDED_H

#include "data/corpus.h"
#include "emass/model.h"
#include "model/lda_local.h"

#include <stdbool.h>

enum { EM_LDA_COLLAPSED, EM_LDA_EXPANDED_MEAN, EM_LDA_EXPANDED_NATURAL };

extern const char *const em_lda_parameters[];

/* Options that have a meaning here alone. */
typedef struct em_lda_expanded_options {
    int parameters;
    double prior_mean, prior_sd;
    em_local_options local;
} em_lda_expanded_options;

#define EM_LDA_EXPANDED_FIELDS(options, member)                                                    \
    EM_ROW_AS("parameters", options, member.parameters, EM_FIELD_CHOICE, int,                      \
              .fallback = "collapsed", .choices = em_lda_parameters,                               \
              .doc = "collapsed for lda_gibbs; expanded_mean for sgrld and sgrhmc, "               \
                     "expanded_natural for the other samplers with minibatches"),                  \
        EM_ROW_AS("prior_mean", options, member.prior_mean, EM_FIELD_REAL, double,                 \
                  .minimum = -1e3, .maximum = 1e3, .fallback = "0.1",                              \
                  .doc = "of the normal prior of expanded_natural, which has no beta"),            \
        EM_ROW_AS("prior_sd", options, member.prior_sd, EM_FIELD_REAL, double, .minimum = 1e-6,    \
                  .maximum = 1e6, .fallback = "1", .doc = "standard deviation of the same"),       \
        EM_LOCAL_FIELDS(options, member.local)

/* The options of model lda that it shares with the collapsed form. */
typedef struct em_lda_expanded_setup {
    const em_corpus_options *corpus;
    const em_lda_expanded_options *own;
    char *test;
    int64_t topics, test_every;
    double alpha, beta;
    bool store_phi;
} em_lda_expanded_setup;

/* em_model_ops.create. `corpus` and `own` outlive the model. */
em_status em_lda_expanded_create(const em_lda_expanded_setup *options,
                                 const em_model_context *context, em_model **out);

#endif
