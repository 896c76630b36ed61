/* Merges files of one model, for example of the jobs of an array, into one file with all chains. */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct em_merging {
    const char *output;
    int64_t n_input;
    const char *const *input; /* [n_input] */
    bool overwrite;           /* an output that exists */
    bool common;              /* the draws that all have, of runs that have not ended too */
    /* What came of it; `cut`: which draws, where not all (em_reader_cut); freed by em_release. */
    int64_t n_chain, n_draw;
    char *cut;
} em_merging;

/* Writes the output: groups of draws with the chains of all files, in their order, some draws of
 * one chain at a time; data as they are, which have to be the same; what was learned of the mass
 * with an axis `run`, cut to no length but filled with NaN; and a group `runs` of what the files
 * say of themselves. The bytes are the same on any number of ranks. Collective. Errors, agreed:
 * EM_EUSAGE (the output), EM_EDATA (files that do not go together), EM_EIO, EM_EMEMORY. */
em_status em_merge(em_merging *request);
