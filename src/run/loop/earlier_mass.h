/* Reads mass, step size and positions from the file of an earlier run (mass.from). */
#pragma once

#include "run/config/config.h"

typedef struct em_initial {
    em_mass *mass;   /* the same on all ranks */
    int structure;   /* its em_structure_choice */
    em_reals blocks; /* of block_diagonal: their sizes; owned */
    double step_size;
    em_trajectory trajectory; /* a time of NaN: the file has none */
    double *noncentring; /* [dim] em_noncentring_row; NULL: coordinates were the model's; owned */
} em_initial;

/* Reads the final mass and the mean step size of the file: of its only sampler, or (not NULL) of
 * the one on `block`. Collective. Errors, agreed: EM_EDATA if emass did not write the file, it has
 * no such sampler or another dimension, its chains did not share a mass, or the mass is not valid.
 */
em_status em_initial_load(const char *path, const char *block, int64_t dim, em_initial *out);
void em_initial_release(em_initial *initial);

/*
 * theta[c] = the last unconstrained draw of the file's chain c, for the chains of this rank,
 * [n][stride]; if the file has fewer chains, they are used again in order. Local. Errors: EM_EDATA.
 */
em_status em_initial_positions(const char *path, int64_t first_chain, int64_t n_chain, int64_t dim,
                               int64_t stride, double *theta);
