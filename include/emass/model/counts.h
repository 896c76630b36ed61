/*
 * Capability `counts`: a likelihood that depends on the data by integer counts over the rows asked
 * for. Sums of integers (below 2^53) have the same bits however rows are dealt and added: shards of
 * such a model need not hold whole parts.
 */
#ifndef EMASS_MODEL_COUNTS_H
#define EMASS_MODEL_COUNTS_H

#include "emass/model.h"

EM_BEGIN_C

typedef struct em_model_counts {
    /* add_likelihood adds integers alone to gradient and log_density. This makes the log likelihood
     * and its gradient of their sums over all shards, which stand in their places. OPTIONAL. Local.
     */
    void (*finish)(em_model *model, const em_query *sums);
    bool all; /* all its likelihoods are such: nothing depends on the number of shards */
} em_model_counts;

EM_END_C

#endif
