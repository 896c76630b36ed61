/* Predictions for what was not observed, from the draws of a finished run. */
#ifndef EM_RUN_LOOP_PREDICTION_H
#define EM_RUN_LOOP_PREDICTION_H

#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct em_prediction {
    const char *path, *folder; /* the file of the run; em_stored_config's */
    const char *data;          /* what is new; may be relative to the current folder */
    const char *output;
    bool overwrite; /* an output that exists */
    /* What came of it. */
    int64_t n_chain, n_draw, n_failed; /* n_failed: draws that had no prediction, which are NaN */
    char failure[256];                 /* why, the first of this rank */
} em_prediction;

/*
 * Writes a file with the group predictions: for each draw of the posterior in the file, what the
 * model of its config makes of the new data. The file is the same on any number of ranks, and there
 * is none, or the old one, until it is whole. Collective. Errors, agreed: EM_EUSAGE (the output),
 * EM_ECONFIG, EM_EDATA, EM_EIO, EM_EMEMORY, and what the model says.
 */
em_status em_predict(em_prediction *order);

#endif
