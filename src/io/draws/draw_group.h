/* A group of draws: datasets of (chain, draw, ...), of which each rank writes its own chains. */
#pragma once

#include "io/draws/group.h"

typedef struct em_draws em_draws;

/* Creates the datasets in `group`, which is borrowed. All draws are NaN (no number, false) until
 * they are written, so that a killed run leaves no zeros that look like draws, and a full disk is
 * noticed before sampling. Collective. Errors: EM_EIO, EM_EMEMORY, agreed; em_draws_close(*out) all
 * the same. */
em_status em_draws_create(const em_grid *grid, em_group *group, int64_t n_series,
                          const em_variable *series, int64_t n_draw, int64_t n_chunk_draw,
                          em_draws **out);

/* See em_writer_put_draws. Collective. Errors: EM_EIO, EM_EMEMORY, agreed. */
em_status em_draws_put(em_draws *draws, int64_t first, int64_t n, const double *value);

/* See em_writer_put_chain. Collective. Errors: EM_EIO, EM_EMEMORY, agreed. */
em_status em_draws_put_chain(em_draws *draws, int64_t chain, int64_t first, int64_t n,
                             const double *value);

/* Only the first `n_draw` draws are to be kept, see em_draws_shrink. Local. */
void em_draws_keep(em_draws *draws, int64_t n_draw);

/* Cuts the datasets, in the same file closed by all ranks and opened by this one alone: the
 * shrinking of chunked datasets by several ranks leaves their metadata caches in disagreement (HDF5
 * 1.10.8). `draws` may have been closed. Local. Errors: EM_EIO. */
em_status em_draws_shrink(const em_draws *draws, hid_t file);

void em_draws_close(em_draws *draws);    /* Closes what is open in the file. Collective. */
void em_draws_destroy(em_draws **draws); /* Local. */
