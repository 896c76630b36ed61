/*
 * Latent Dirichlet allocation for stochastic-gradient kernels. The word distributions of topics are
 * parameters (topics/topic_parameters.h); the topics of tokens are drawn anew for every gradient
 * (topics/lda_local.h). Model lda becomes this one by its option `parameters`.
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
