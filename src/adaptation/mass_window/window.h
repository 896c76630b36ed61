/*
 * A window of draws and their gradients, of all chains that share a mass, thinned evenly to a fixed
 * size. It is used for estimates that cannot be computed from sums (low rank), or whose sums would
 * take more memory than the draws (dense). The selection of iterations depends on their numbers
 * alone, so it is the same on any number of ranks.
 */
#pragma once

#include "emass/visitor.h"
#include "mass/estimator.h"
#include "par/grid.h"
#include "sampler/kernel/sampler.h"

typedef struct em_window {
    int64_t dim, n_chain; /* of this rank */
    int64_t skip;         /* interval of the chains of the run that are kept */
    int64_t n_slot;       /* iterations that it can hold; 0: none */
    double from, every;   /* iterations from `from` on that are multiples of `every` */
    double *iteration;    /* [n_slot] the iteration in each slot; -1: none */
    double *row;          /* [n_chain][n_slot][2][dim]; a NaN first: left out */
} em_window;

/* The largest number of samples for an estimate in the span of the samples: 200, or as many as fit
 * into 128 MB. The work grows with its cube. Local. */
int64_t em_window_span(int64_t dim);

/* Creates a window for pools of chains_per_pool chains, of which n_chain are on this rank. A window
 * has at most `longest` iterations, and about `most` samples are kept. Local. Errors: EM_EMEMORY.
 */
em_status em_window_create(em_owner *owner, int64_t chains_per_pool, int64_t n_chain, int64_t dim,
                           int64_t longest, int64_t most, em_window *out);

/* Sets the iterations that the next estimate uses: from .. to - 1. `from` never decreases. Local.
 */
void em_window_aim(em_window *window, int64_t from, int64_t to);

/* Stores the draws in the block, if the window keeps this iteration. Local. */
void em_window_take(em_window *window, const em_block *block, int64_t iteration);

/* Leaves out the samples of local chain `chain` of iterations before `before`. Local. */
void em_window_forget(em_window *window, int64_t chain, double before);

/* The sample in a slot of chain `chain` of the run, which must be on this rank: a draw, then its
 * gradient, [2][dim]. NULL: the next estimate does not use this slot. Local. */
const double *em_window_sample(const em_window *window, const em_grid *grid, int64_t chain,
                               int64_t slot);

/* The samples of all chains of the run that are not outlying (NULL: none is), ordered by slot, then
 * by chain. Collective. Errors: EM_EMEMORY, agreed. Freed by em_release. */
em_status em_window_gather(const em_window *window, const em_grid *grid, const bool *outlying,
                           em_samples *out);

/* The samples of one chain of this rank. Local. Errors: EM_EMEMORY. Freed by em_release. */
em_status em_window_of_chain(const em_window *window, int64_t chain, em_samples *out);

/* Passes its state to a visitor. Collective. Errors: the visitor's. */
em_status em_window_visit(em_window *window, const em_visitor *visitor);
