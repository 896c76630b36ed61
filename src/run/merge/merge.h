/* Merges files of one model, for example of the jobs of an array, into one file with all chains. */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct em_merging {
    const char *output;
    int64_t n_input;
    const char *const *input; /* [n_input] */
    bool overwrite;           /* replace an existing output */
    bool common;              /* only the draws that all files have; runs need not have ended */
    /* Results. `cut`: which draws, if not all (em_reader_cut); freed by em_release. */
    int64_t n_chain, n_draw;
    char *cut;
} em_merging;

/* Writes the output. Groups of draws have the chains of all files, in the order of the files. Data
 * must be the same in all files, and are copied. Arrays of the learned mass get an axis `run`;
 * shorter ones are filled with NaN. A group `runs` has the attributes of each file. The bytes are
 * the same on any number of ranks. Collective. Errors, agreed: EM_EUSAGE (the output), EM_EDATA
 * (files that do not match), EM_EIO, EM_EMEMORY. */
em_status em_merge(em_merging *request);
