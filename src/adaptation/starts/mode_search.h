/*
 * The mode search: it chooses the starts of chains, and reports modes that the chains missed.
 *
 * A chain starts at a draw from the law of starts. Where that draw's log density is lower than
 * those of draws from the target, the chain starts at a point on the ascent from it instead. A
 * start is drawn again in two cases: it cannot move, or the optimum that its ascent reaches has
 * e^-15 or less of the Laplace mass of another chain's. No state is copied between chains. With few
 * chains, further draws are followed to their optima, which only adds modes to the list. At the end
 * of warmup draws that are far from the chains are followed, too. While chains sample, visits to
 * each mode are counted. A mode of notable mass that no draw is near to is reported.
 */
#pragma once

#include "emass/visitor.h"
#include "par/grid.h"
#include "sampler/kernel/sampler.h"

typedef struct em_mode_search em_mode_search;

/* The law of starts: draw number `draw` of chain `chain` of the run into theta [stride]. Local. */
typedef em_status em_start_law(void *context, int64_t chain, uint64_t draw, double *theta);

typedef struct em_mode_findings {
    int64_t n_redrawn; /* draws of starts that were replaced by another draw */
    int64_t n_mode;    /* em_mode_search_n_mode */
    int64_t n_missed;  /* of these, those that no draw, or too few, are near to */
    double log_mass;   /* log of the Laplace mass of these over that of the others; NaN: none */
} em_mode_findings;

/* Dimensions up to which optima are compared, and modes are told. */
enum { EM_MODE_SEARCH_MOST_DIM = 200 };

/* Modes that are told apart. */
enum { EM_MOST_MODES = 32 };

/* How much is searched, and what counts as missed. */
typedef struct em_search_plan {
    int64_t least, most; /* draws of all chains that are followed to their optima */
    double gradients;    /* of all chains, after which there are no more than the least */
    double share;        /* A mode is missed where its share of the draws is below this share of its
                            share of the Laplace mass; 0: where it has none */
    bool keeps_one;      /* the law of a single mode is kept, too */
} em_search_plan;

/* Where optima are not compared, one draw of each chain is followed. `grid` outlives it. Local.
 * Errors: EM_EMEMORY. */
em_status em_mode_search_create(em_grid *grid, int64_t dim, const em_search_plan *plan,
                                em_mode_search **out);
void em_mode_search_destroy(em_mode_search **search);

/*
 * Moves the chains of the block, which stand on the first draws of their starts, to where they
 * begin, with their densities and gradients. Adds to gradients [n_local_chain] what that took.
 * Collective. Errors, agreed: those of the law and of the target, EM_EMEMORY.
 */
em_status em_mode_search_start(em_mode_search *search, em_posterior *posterior, em_start_law *law,
                               void *context, em_block *block, double *gradients);

/*
 * Looks for modes once more, when chains have warmed up: from where they stand, and from draws of a
 * law, which may be far from there. `scale` [stride] is about the diagonal of the inverse
 * curvature, the same on all ranks. Where there are more modes than were known, these replace them.
 * Adds to gradients [n_local_chain] what that took. Before the first visit is counted. Collective.
 * Errors: as above.
 */
em_status em_mode_search_look_again(em_mode_search *search, em_posterior *posterior,
                                    const em_search_plan *plan, em_start_law *law, void *context,
                                    const em_block *block, const double *scale, double *gradients);

/* The diagonal of the inverse curvature at the optimum of each chain of this rank, as estimated in
 * the ascent from its start, [n_local_chain][stride]; NULL: not known. Local. */
const double *em_mode_search_scale(const em_mode_search *search);

/* A mode that was found, in the Laplace approximation. */
typedef struct em_mode_law {
    double log_mass;
    const double *centre, *precision; /* [dim], [dim][dim] of which the lower triangle is read */
} em_mode_law;

/* How many modes there are that hold 1 % of the mass; 0: none, or one that was not to be kept. The
 * law of mode m, until the search is destroyed. Local. */
int64_t em_mode_search_n_mode(const em_mode_search *search);
em_mode_law em_mode_search_mode(const em_mode_search *search, int64_t m);

/* Counts for each chain which mode it is near to after an iteration of sampling. Local. */
void em_mode_search_observe(em_mode_search *search, const em_block *block, int64_t iteration);

/* The findings at the end of sampling. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_mode_search_conclude(em_mode_search *search, em_mode_findings *out);

/* What the findings would be, had the chains of this rank only been at theta [n][stride]. What was
 * observed stays as it is. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_mode_search_judge(em_mode_search *search, int64_t n, const double *theta,
                               em_mode_findings *out);

/* Passes its whole state to a visitor. Collective. Errors: the visitor's; EM_EDATA, EM_EMEMORY. */
em_status em_mode_search_visit(em_mode_search *search, const em_visitor *visitor);
