/*
 * The mode search: it chooses the starts of chains, and reports modes that the chains missed.
 *
 * A chain starts at a draw from the distribution of starts. If the log density there is lower than
 * at draws from the posterior, the chain starts at a point on the ascent from it instead. A start
 * is drawn again in two cases: it cannot move, or the optimum that its ascent reaches has e^-15 or
 * less of the Laplace mass of another chain's. No state is copied between chains. With few chains,
 * further draws are followed to their optima, which only adds modes to the list. Probes may follow
 * (probes.h): single gradients at many more points, which also only add modes. At the end of
 * warmup ascents also start from points far from the chains. While chains sample, visits to each
 * mode are counted. A mode of notable mass that no draw is near to, or inside of, is reported.
 */
#pragma once

#include "adaptation/starts/mode_visits.h"
#include "emass/visitor.h"
#include "par/grid.h"
#include "posterior/noncentring.h"
#include "sampler/kernel/sampler.h"

typedef struct em_mode_search em_mode_search;

/* The distribution of starts: writes draw number `draw` for chain `chain` of the run to theta
 * [stride]. Local. */
typedef em_status em_start_law(void *context, int64_t chain, uint64_t draw, double *theta);

typedef struct em_mode_findings {
    int64_t n_redrawn; /* starts that were drawn again */
    int64_t n_mode;    /* em_mode_search_n_mode */
    int64_t n_missed;  /* modes with no draws, or too few, nearby or inside */
    double log_mass;   /* log ratio of the Laplace mass of the missed modes to that of the other
                          modes and of the draws that are inside no mode; NaN: none is missed */
} em_mode_findings;

/* The largest dimension in which optima are compared and modes found. */
enum { EM_MODE_SEARCH_MOST_DIM = 200 };

/* The effort of the search, and the definition of a missed mode. */
typedef struct em_search_plan {
    int64_t least, most; /* draws of all chains that are followed to their optima */
    double gradients;    /* of all chains, after which only the least number of draws is followed */
    double share;        /* a mode is missed if its fraction of the draws is below `share` times its
                            fraction of the Laplace mass; 0: if it has no draws */
    bool notes_steep;    /* steep points of sampling are noted (steep_search.h) */
    bool keeps_one;      /* the normal approximation of a single mode is always kept, too */
    double farthest;     /* not 0: the gradients that the ascents leave are used for probes: single
                            gradients at points around the known modes, up to this many standard
                            deviations away. Ascents start from the probes that no mode explains */
    double probe_gradients; /* gradients of all chains that probes may take in any case */
    uint64_t seed;          /* of the probes */
} em_search_plan;

/* Creates a search. If optima are not compared (more dimensions than EM_MODE_SEARCH_MOST_DIM), one
 * draw of each chain is followed. `grid` outlives it. Local. Errors: EM_EMEMORY. */
em_status em_mode_search_create(em_grid *grid, int64_t dim, const em_search_plan *plan,
                                em_mode_search **out);
void em_mode_search_destroy(em_mode_search **search);

/*
 * Sets the chains of the block to their starts, with log densities and gradients. On entry they are
 * at draw 0 of the distribution of starts. Adds the number of gradients used to gradients
 * [n_local_chain]. Collective. Errors, agreed: those of `law` and of the posterior, EM_EMEMORY.
 */
em_status em_mode_search_start(em_mode_search *search, em_posterior *posterior, em_start_law *law,
                               void *context, em_block *block, double *gradients);

/*
 * Searches before a tempered run, which needs modes and no starts: in place of chains `n_searcher`
 * searchers, which are divided among the ranks as chains are. Every rank has work however few
 * ladders there are, and the modes do not depend on the number of ranks. The modes replace those of
 * `search`, whose chains are not moved. `plan` counts for all searchers. Collective. Errors: as
 * above.
 */
em_status em_mode_search_shared(em_mode_search *search, em_posterior *posterior,
                                const em_search_plan *plan, int64_t n_searcher, em_start_law *law,
                                void *context);

/*
 * Searches again at the end of warmup: from the positions of the chains, and from draws of `law`,
 * which may be far away. `scale` [stride] approximates the diagonal of the inverse curvature and is
 * equal on all ranks. If more modes are found than were known, they replace the list. If
 * there is one mode, and most chains are at lower densities than draws from it, it is kept. Adds
 * the number of gradients used to gradients [n_local_chain]. Must be called before the first
 * em_mode_search_observe. Collective. Errors: as above.
 */
em_status em_mode_search_repeat(em_mode_search *search, em_posterior *posterior,
                                const em_search_plan *plan, em_start_law *law, void *context,
                                const em_block *block, const double *scale, double *gradients);

/*
 * Looks for a part of the posterior far outside of the chains, at the end of warmup (outer_mass.h).
 * `scale` and `gradients` as above. Must be called before the first em_mode_search_observe.
 * Collective. Errors: as above.
 */
em_status em_mode_search_outside(em_mode_search *search, em_posterior *posterior,
                                 const em_block *block, const double *scale, double *gradients);

/* The diagonal of the inverse curvature at the optimum of each chain of this rank, as estimated in
 * the ascent from its start, [n_local_chain][stride]; NULL: not known. Local. */
const double *em_mode_search_scale(const em_mode_search *search);

/* The Laplace approximation of a mode. */
typedef struct em_mode_law {
    double log_mass;
    const double *centre, *precision; /* [dim], [dim][dim] with a valid lower triangle */
} em_mode_law;

/* em_mode_search_n_mode: the number of modes with at least 1 % of the mass; 0: none, or a single
 * one that was not kept. em_mode_search_mode: mode m, valid until the search is destroyed.
 * Local. */
int64_t em_mode_search_n_mode(const em_mode_search *search);
em_mode_law em_mode_search_mode(const em_mode_search *search, int64_t m);

/* Counts, for each chain, a visit to the mode near to it after an iteration of sampling. Local. */
void em_mode_search_observe(em_mode_search *search, const em_block *block, int64_t iteration);

/* The findings at the end of sampling. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_mode_search_conclude(em_mode_search *search, em_mode_findings *out);

/* The findings if each chain of this rank had visited its positions in theta [n_local_chain][n]
 * [stride] only. The counts of visits are not changed. One gradient for each position if the search
 * has modes. Collective. Errors, agreed: EM_EMEMORY, those of the posterior. */
em_status em_mode_search_judge(em_mode_search *search, em_posterior *posterior, int64_t n,
                               const double *theta, em_mode_findings *out);

/* Where trajectories of sampling note steep points; NULL: nowhere. Local. */
em_steep_points *em_mode_search_steep_points(em_mode_search *search);

/*
 * Looks for modes at the end of sampling, by ascents from the chains of the block and from their
 * steep points, which are in the coordinates of `map` (NULL: in the model's). If there are more
 * modes than were known, the findings are those that em_mode_search_judge would have with these
 * modes and positions of the chains from all of sampling; else they stay as they are. The state of
 * the search is not changed. `scale` as in em_mode_search_repeat. Collective. Errors, agreed:
 * EM_EMEMORY, those of the posterior.
 */
em_status em_mode_search_from_steep(em_mode_search *search, em_posterior *posterior,
                                    const em_noncentring *map, const em_block *block,
                                    const double *scale, em_mode_findings *out);

/* Passes its whole state to a visitor. Collective. Errors: the visitor's; EM_EDATA, EM_EMEMORY. */
em_status em_mode_search_visit(em_mode_search *search, const em_visitor *visitor);
