/* Predictions for what was not observed, from the draws of a finished run. */
#pragma once

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
 * Writes a file with the group predictions: for each posterior draw in the input file, the model's
 * predictions for the new data. The file is the same on any number of ranks. It appears, or
 * replaces the old one, only when complete. Collective. Errors, agreed: EM_EUSAGE (the output),
 * EM_ECONFIG, EM_EDATA, EM_EIO, EM_EMEMORY, and those of the model.
 */
em_status em_predict(em_prediction *request);
