/*
 * Capability `averages`: what a model averages over the draws of each chain and reports once, at
 * the end of a run. It is for arrays that are too large to be stored with every draw. They go into
 * the group `averages` of the output file.
 */
#ifndef EMASS_MODEL_AVERAGES_H
#define EMASS_MODEL_AVERAGES_H

#include "emass/model.h"

EM_BEGIN_C

/* The model says which variables these are: em_model.average [n_average], and em_model.pooled
 * [n_pooled] for those of all chains together. What it keeps for them is state of its chains
 * (emass/model/latent.h: visit). */
typedef struct em_model_averages {
    /* OPTIONAL: a stored draw of sampling, whose report has just been written, goes into the
     * averages of its chain. Local. */
    void (*add)(em_model *model, const em_draw *draw, const double *theta);
    /* OPTIONAL, before averages are reported at the end of a run: what is of all chains together.
     * Collective over all ranks of the run. Errors, agreed: EM_EMEMORY. */
    em_status (*pool)(em_model *model);
    /* Writes the averages of a chain over its draws of sampling so far, as em_model_ops.report does
     * variables: Local, or Collective, as that. */
    void (*report)(em_model *model, int64_t chain, double *out);
    /* OPTIONAL: writes the pooled variables, given the mean over all chains of what `report` wrote.
     * Local. */
    void (*report_pooled)(em_model *model, const double *mean, double *out);
} em_model_averages;

EM_END_C

#endif
