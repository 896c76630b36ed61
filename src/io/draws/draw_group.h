/* A group of draws: datasets of (chain, draw, ...), of which each rank writes its own chains. */
#pragma once

#include "io/draws/draw_space.h"
#include "io/draws/group.h"

typedef struct em_draws em_draws;

/* Creates the datasets in `group`, which is borrowed. All draws but the first space.n_copied are
 * filled with NaN (no number, false) at first. So a killed run leaves no zeros that look like
 * draws, and a full disk is noticed before sampling. Collective. Errors: EM_EIO, EM_EMEMORY,
 * agreed; call em_draws_close(*out) even then. */
em_status em_draws_create(const em_grid *grid, em_group *group, int64_t n_series,
                          const em_variable *series, em_draw_space space, em_draws **out);

/* See em_writer_put_draws. Collective. Errors: EM_EIO, EM_EMEMORY, agreed. */
em_status em_draws_put(em_draws *draws, int64_t first, int64_t n, const double *value);

/* See em_writer_put_chain. Collective. Errors: EM_EIO, EM_EMEMORY, agreed. */
em_status em_draws_put_chain(em_draws *draws, int64_t chain, int64_t first, int64_t n,
                             const double *value);

/* Sets the number of draws that em_draws_shrink keeps. Local. */
void em_draws_keep(em_draws *draws, int64_t n_draw);

/* Truncates the datasets. All ranks must have closed the file, and this rank alone has opened it:
 * if several ranks shrink chunked datasets, their metadata caches disagree afterwards (HDF5
 * 1.10.8). `draws` may have been closed. Local. Errors: EM_EIO. */
em_status em_draws_shrink(const em_draws *draws, hid_t file);

void em_draws_close(em_draws *draws);    /* Closes what is open in the file. Collective. */
void em_draws_destroy(em_draws **draws); /* Local. */
