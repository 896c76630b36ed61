/*
 * Capability `summary`: a likelihood of all observations that depends on a few sums over them. The
 * sums are made once, on all shards; add_likelihood is then asked for all rows (em_rows.all) and
 * needs no pass over the data.
 */
#ifndef EMASS_MODEL_SUMMARY_H
#define EMASS_MODEL_SUMMARY_H

#include "emass/model.h"

EM_BEGIN_C

/* The model says how many pieces its summary has, em_model.n_piece, of em_model.piece_size numbers
 * each. They are asked for once, one after the other. */
typedef struct em_model_summary {
    /* Adds a piece of the observations asked for, which are one part. Local. */
    void (*add)(em_model *model, int64_t piece, const em_rows *rows, double *sum);
    /* Takes its sum over all parts of all shards. Local. */
    void (*take)(em_model *model, int64_t piece, const double *sum);
} em_model_summary;

EM_END_C

#endif
