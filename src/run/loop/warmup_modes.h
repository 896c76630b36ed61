/*
 * Detection of several modes at the end of warmup, from thinned draws of warmup. With `temper:
 * auto` a run stores them to decide whether its chains are tempered.
 */
#pragma once

#include "adaptation/starts/mode_search.h"
#include "diagnostics/modes.h"
#include "emass/visitor.h"
#include "par/grid.h"
#include "posterior/noncentring.h"
#include "sampler/kernel/sampler.h"

typedef struct em_warmup_draws em_warmup_draws;

/* The modes in the later half of the draws; equal on all ranks. */
typedef struct em_warmup_modes {
    em_modes modes;  /* modes of the chains; count 0: one */
    double log_mass; /* log mass of modes of the search without draws nearby minus that of the
                        others; NaN: none */
} em_warmup_modes;

/* Positions of all chains have `dim` numbers, of which the first 200 are kept. `grid` outlives it.
 * Local. Errors: EM_EMEMORY. */
em_status em_warmup_draws_create(em_grid *grid, int64_t dim, em_warmup_draws **out);

/* Stores the positions of the chains of the block after an iteration (from 0), if it is not thinned
 * out. Local. */
void em_warmup_draws_take(em_warmup_draws *draws, const em_block *block, int64_t iteration);

/* Finds the modes of the draws. search NULL: the run had no mode search. Collective. Errors:
 * EM_EMEMORY, agreed. */
em_status em_warmup_draws_find_modes(const em_warmup_draws *draws, em_mode_search *search,
                                     em_posterior *posterior, em_warmup_modes *out);

/* Mean and variance of the later half, over all chains, [dim] each, in the coordinates of a map
 * (NULL: the model's). *known: whether all dimensions were stored and vary. Collective. Errors:
 * EM_EMEMORY, agreed. */
em_status em_warmup_draws_moments(const em_warmup_draws *draws, const em_noncentring *map,
                                  double *mean, double *variance, bool *known);

/* Passes its whole state to a visitor. Collective. Errors: the visitor's. */
em_status em_warmup_draws_visit(em_warmup_draws *draws, const em_visitor *visitor);

/* Whether `temper: auto` tempers the chains: they are in several modes, or a mode with notable mass
 * has no chain. */
bool em_warmup_modes_several(const em_warmup_modes *found);

/* "2 modes (2 and 2 of 4 chains)", "a mode of 0.1 times the mass that no chain is in". Local. */
void em_warmup_modes_describe(const em_warmup_modes *found, size_t bytes, char *text);
