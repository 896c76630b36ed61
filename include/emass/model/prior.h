/*
 * Capability `prior`: draws from the prior, for the groups prior and prior_predictive of the output
 * file (output.prior_draws in a config).
 */
#ifndef EMASS_MODEL_PRIOR_H
#define EMASS_MODEL_PRIOR_H

#include "emass/model.h"

EM_BEGIN_C

typedef struct em_model_prior {
    /* A position from the prior, theta [dim]: the model's report of it follows. Counts random
     * numbers by `draw`, and may fail, as em_model_ops.report does. Local. */
    em_status (*draw)(em_model *model, const em_draw *draw, double *theta);
    const char *none; /* INSTEAD: why there are none, in words that follow "model NAME" */
} em_model_prior;

EM_END_C

#endif
