/*
 * Capability `minibatch`: an estimate of the density from listed rows, made all at once. Models
 * without it are sampled from minibatches too, by add_prior and add_likelihood. This is for models
 * of so many parameters that every pass over them counts.
 */
#ifndef EMASS_MODEL_MINIBATCH_H
#define EMASS_MODEL_MINIBATCH_H

#include "emass/model.h"

EM_BEGIN_C

typedef struct em_model_minibatch {
    /*
     * What a minibatch says of one chain: the prior, if `with_prior`, and `scale` times the
     * likelihood of the listed rows. Log density and gradient, padding too, are written, not added
     * to, and are the numbers that add_prior and add_likelihood lead to. Of several shards each is
     * asked for the rows it has, which may be none, and all but the first without the prior. Local.
     */
    em_status (*estimate)(em_model *model, const em_query *query, double scale, bool with_prior);
} em_model_minibatch;

EM_END_C

#endif
