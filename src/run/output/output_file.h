/* Private to this folder: the struct of an output, and functions that write its end. */
#pragma once

#include "io/draws/writer.h"
#include "run/output/output.h"

/* A group of draws of warmup or of sampling, with its buffer. */
typedef struct em_file_group {
    int group; /* of the writer */
    int64_t width;
    double *buffer; /* [n_local_chain][plan->buffer][width] */
} em_file_group;

struct em_output {
    em_owner memory; /* of the buffers */
    em_output_run run;
    em_signature signature;
    em_writer *writer;
    const em_layout *layout;
    int64_t n_local_chain;
    em_file_group *sampling, *warmup; /* [layout->n_group] */
    em_file_group averages;           /* of the model: one draw; group -1: none */
    int64_t first, n_taken; /* the buffers hold draws of a phase from `first` on, of all chains */
    bool in_warmup;         /* the draws in the buffers are of warmup */
};

typedef struct em_group_name {
    char text[64];
} em_group_name;

/* The name of the group with the draws of warmup. Local. */
em_group_name em_warmup_group(const char *name);

/* Writes the M-steps, the final inverse mass and the step sizes of a sampler of all parameters
 * (block NULL), or of a block, into a group of its own: mass_adaptation_<block>. Collective.
 * Errors, agreed: EM_EIO, EM_EMEMORY. */
em_status em_output_put_learned(em_output *output, const em_adapt *adapt, const char *block);

/* Writes the group `tempering`, and its description as an attribute of the file. Collective.
 * Errors, agreed: EM_EIO, EM_EMEMORY. */
em_status em_output_put_tempering(em_output *output, const char *description);

/* Writes the map of non-centred parameters, a row for each unconstrained parameter
 * (posterior/noncentring.h). map NULL: chains move in the model's coordinates. Collective. Errors:
 * those of the writer. */
em_status em_output_put_noncentring(em_output *output, const em_noncentring *map,
                                    const char *group);
