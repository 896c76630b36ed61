/*
 * Where chains begin, and which modes they could have missed.
 *
 * A chain begins at one draw from the law of starts, or on the way up from it where the draw is
 * farther out than draws of the target are. A start is drawn anew where it cannot move, and where
 * the optimum above it holds e^-15 or less of the Laplace mass above another start. Nothing is
 * copied between chains. Where there are few chains, some more draws are followed up to their
 * optima. The modes found are counted by visits while chains sample: one that has mass and that no
 * draw is near to is reported.
 */
#ifndef EM_ADAPTATION_STARTS_MODE_SEARCH_H
#define EM_ADAPTATION_STARTS_MODE_SEARCH_H

#include "emass/visitor.h"
#include "par/grid.h"
#include "sampler/kernel/sampler.h"

typedef struct em_mode_search em_mode_search;

/* The law of starts: draw number `draw` of chain `chain` of the run into theta [stride]. Local. */
typedef em_status em_start_law(void *context, int64_t chain, uint64_t draw, double *theta);

typedef struct em_mode_findings {
    int64_t n_redrawn; /* draws of starts that were replaced by another draw */
    int64_t n_mode;    /* modes found that hold at least 1 % of the Laplace mass; 0: one, or none */
    int64_t n_missed;  /* of these, those that no draw is near to */
    double log_mass;   /* log of the Laplace mass of these over that of the others; NaN: none */
} em_mode_findings;

/* `grid` outlives it. Local. Errors: EM_EMEMORY. */
em_status em_mode_search_create(em_grid *grid, int64_t dim, em_mode_search **out);
void em_mode_search_destroy(em_mode_search **search);

/*
 * Moves the chains of the block, which stand on the first draws of their starts, to where they
 * begin, with their densities and gradients. Adds to gradients [n_local_chain] what that took.
 * Collective. Errors, agreed: those of the law and of the target, EM_EMEMORY.
 */
em_status em_mode_search_start(em_mode_search *search, em_posterior *posterior, em_start_law *law,
                               void *context, em_block *block, double *gradients);

/* The diagonal of the inverse curvature above the start of each chain of this rank, as the way up
 * told it, [n_local_chain][stride]; NULL: not known. Local. */
const double *em_mode_search_scale(const em_mode_search *search);

/* Counts for each chain which mode it is near to after an iteration of sampling. Local. */
void em_mode_search_observe(em_mode_search *search, const em_block *block, int64_t iteration);

/* What was found. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_mode_search_conclude(em_mode_search *search, em_mode_findings *out);

/* Shows all of it to a visitor. Collective. Errors: the visitor's; EM_EDATA, EM_EMEMORY. */
em_status em_mode_search_visit(em_mode_search *search, const em_visitor *visitor);

#endif
