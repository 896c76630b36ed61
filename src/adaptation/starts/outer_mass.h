/*
 * The mass of the posterior far outside of the chains. Private to the mode search.
 *
 * Ascents find optima only. A wide component around a narrow one has none, so chains that begin in
 * the narrow one may miss it without a trace. At the end of warmup, the log density is evaluated
 * along rays from the mean of the chains. A ray has a random direction in units of the scales of
 * the posterior. The density times the volume of a spherical shell is the mass at that radius. If
 * the mean of this mass over the rays falls and rises again, there is an outer part, which begins
 * where the mass is least. The integral over the rays is an unbiased estimate of the mass of the
 * outer part. If no draws are there, although its mass is notable beside the mass that the draws
 * show (draw_mass.h), the draws miss it.
 */
#pragma once

#include "emass/visitor.h"
#include "par/grid.h"
#include "sampler/kernel/sampler.h"

#include <stdbool.h>

typedef struct em_outer_mass {
    bool exists;           /* there is an outer part; else nothing below is used */
    double log_mass;       /* of the outer part */
    double radius;         /* where it begins, in scales */
    double *centre;        /* [dim] of the rays */
    double *precision;     /* [dim] 1 / scale^2 */
    double *n_outer, *sum; /* [n_local] draws in the outer part; [n_local][em_draw_mass_size] sums
                              over the others */
} em_outer_mass;

void em_outer_mass_release(em_outer_mass *outer);

/* A copy without counts of draws. Local. Errors: EM_EMEMORY. */
em_status em_outer_mass_copy(const em_outer_mass *from, int64_t n_local, int64_t dim,
                             em_outer_mass *out);

/* Looks for an outer part. `variance` [dim]: squared scales, equal on all ranks. `seed`: of the
 * directions. Adds the number of gradients to gradients [n_local_chain]. Collective. Errors,
 * agreed: EM_EMEMORY, those of the posterior. */
em_status em_outer_mass_search(em_posterior *posterior, em_grid *grid, const em_block *block,
                               const double *variance, uint64_t seed, double *gradients,
                               em_outer_mass *out);

/* Counts a draw of chain c of this rank. Local. */
void em_outer_mass_count(em_outer_mass *outer, int64_t c, int64_t dim, const double *theta,
                         double log_density);

/* The log ratio of the mass of the outer part to that of the draws if the draws miss it; else NaN.
 * Collective. Errors: EM_EMEMORY, agreed. */
em_status em_outer_mass_missed(const em_outer_mass *outer, em_grid *grid, int64_t dim,
                               double *log_ratio);

/* Passes its whole state to a visitor. Collective. Errors: the visitor's; EM_EMEMORY, agreed. */
em_status em_outer_mass_visit(em_outer_mass *outer, int64_t n_local, int64_t dim,
                              const em_visitor *visitor);
