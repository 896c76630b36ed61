/*
 * Latent Dirichlet allocation for kernels of stochastic gradients: the topics' laws of words are
 * parameters (topics/topic_parameters.h), the documents' topics are drawn anew for every gradient
 * (topics/lda_local.h). Model lda is this one where its option `parameters` says so.
 */
#ifndef EM_TOPICS_LDA_EXPANDED_H
#define EM_TOPICS_LDA_EXPANDED_H

#include "emass/model.h"
#include "topics/topic_model.h"

/* em_model_ops.create, with `alpha` as the prior of each document's weights. `options` outlive the
 * model. */
em_status em_lda_expanded_create(const em_topic_options *options, double alpha,
                                 const em_model_context *context, em_model **out);

#endif
