/*
 * The search from steep points (sampler/kernel/steep_points.h) at the end of a run. An ascent from
 * each of them may end in a mode that no draw is near to. Positions of the chains are kept
 * throughout sampling, to judge whether draws are near to it. Private to the mode search.
 */
#pragma once

#include "emass/visitor.h"
#include "par/grid.h"
#include "sampler/kernel/sampler.h"
#include "sampler/kernel/steep_points.h"

typedef struct em_steep_search {
    em_steep_points points;
    int64_t most, n; /* positions of a chain that are kept: at most; so far */
    int64_t every;   /* they are from iterations that are multiples of this power of two */
    int64_t last;    /* the iteration of the latest of them */
    double *kept;    /* [n_chain][most][stride] the positions */
} em_steep_search;

/* Local. Errors: EM_EMEMORY. */
em_status em_steep_search_create(em_owner *owner, em_grid *grid, int64_t dim, em_steep_search *out);

/* Keeps the positions of the chains after an iteration of sampling, or not. Local. */
void em_steep_search_observe(em_steep_search *search, const em_block *block, int64_t iteration);

/* Whether a chain of the run has a steep point. Collective. */
bool em_steep_search_has_points(const em_steep_search *search);

/* Passes its whole state to a visitor. Collective. Errors: the visitor's. */
em_status em_steep_search_visit(em_steep_search *search, const em_visitor *visitor);
