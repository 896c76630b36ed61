/*
 * Several modes at the end of warmup: draws of warmup, thinned, and what their later half shows.
 * With `temper: auto` a run keeps them to decide whether its chains are tempered.
 */
#pragma once

#include "adaptation/starts/mode_search.h"
#include "diagnostics/modes.h"
#include "emass/visitor.h"
#include "par/grid.h"
#include "sampler/kernel/sampler.h"

typedef struct em_warmup_draws em_warmup_draws;

/* What the later half of the draws shows; the same on all ranks. */
typedef struct em_warmup_modes {
    em_modes modes;  /* that chains are in; count 0: one */
    double log_mass; /* of modes that the search found and no draw is near to, less that of the
                        others; NaN: none */
} em_warmup_modes;

/* Positions of all chains have `dim` numbers, of which the first 200 are kept. `grid` outlives it.
 * Local. Errors: EM_EMEMORY. */
em_status em_warmup_draws_create(em_grid *grid, int64_t dim, em_warmup_draws **out);
void em_warmup_draws_destroy(em_warmup_draws **draws); /* NULL-safe. */

/* Keeps where the chains of the block are after an iteration (from 0), where it is due. Local. */
void em_warmup_draws_take(em_warmup_draws *draws, const em_block *block, int64_t iteration);

/* search: NULL where modes were not searched for. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_warmup_draws_find_modes(const em_warmup_draws *draws, em_mode_search *search,
                                     em_warmup_modes *out);

/* Mean and variance of the later half, over all chains, [dim] each. *known: there are as many
 * numbers, and they vary. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_warmup_draws_moments(const em_warmup_draws *draws, double *mean, double *variance,
                                  bool *known);

/* Passes its whole state to a visitor. Collective. Errors: the visitor's. */
em_status em_warmup_draws_visit(em_warmup_draws *draws, const em_visitor *visitor);

/* Whether `temper: auto` tempers the chains: they are in several modes, or none is in a mode that
 * has notable mass. */
bool em_warmup_modes_several(const em_warmup_modes *found);

/* "2 modes (2 and 2 of 4 chains)", "a mode of 0.1 times the mass that no chain is in". Local. */
void em_warmup_modes_describe(const em_warmup_modes *found, size_t bytes, char *text);
