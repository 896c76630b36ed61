/*
 * Capability `ranges`: the gradient of an estimate by one range of parameters at a time, for models
 * of so many parameters that they are far from each other in memory. A kernel asks for the gradient
 * of a range when it has these parameters at hand, and publishes them when it has moved them. Such
 * a model has the capability `minibatch` too.
 */
#ifndef EMASS_MODEL_RANGES_H
#define EMASS_MODEL_RANGES_H

#include "emass/model.h"

EM_BEGIN_C

typedef struct em_model_ranges {
    /* As em_model_minibatch.estimate, with the prior, but that the gradient is not written. With
     * `published`, theta is, all of it, what `publish` was given since the last estimate. Local. */
    em_status (*estimate)(em_model *model, const em_query *query, double scale, bool published);
    /* The gradient of the last estimate by parameters first .. first + n - 1, which are theta [n],
     * as they were then. Local. */
    void (*gradient)(em_model *model, int64_t first, int64_t n, const double *theta,
                     double *gradient);
    /* In the next estimate parameters first .. first + n - 1 are theta [n]; gradients by others may
     * still be asked for. Local. */
    void (*publish)(em_model *model, int64_t first, int64_t n, const double *theta);
} em_model_ranges;

EM_END_C

#endif
