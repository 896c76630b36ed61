/* Predictions for new data from the draws of a finished run. */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct em_prediction {
    const char *path, *folder; /* the file of the run; em_stored_config's */
    const char *data;          /* the new data; a path may be relative to the current folder */
    const char *format, *header, *decimal; /* values of the model's options; NULL: as the run has */
    const char *output;
    bool overwrite; /* replace an existing output */
    /* Results: */
    int64_t n_chain, n_draw, n_failed; /* n_failed: draws whose prediction failed and is NaN */
    char failure[256];                 /* message of the first failure on this rank */
} em_prediction;

/*
 * Writes a file with the group predictions: for each posterior draw in the input file, the model's
 * predictions for the new data. The file is the same on any number of ranks. It appears, or
 * replaces the old one, only when complete. Collective. Errors, agreed: EM_EUSAGE (the output),
 * EM_ECONFIG, EM_EDATA, EM_EIO, EM_EMEMORY, and those of the model.
 */
em_status em_predict(em_prediction *request);
