/*
 * A window of draws and their gradients, of all chains that share, thinned evenly to a fixed size.
 * It serves estimates that cannot be made from sums (low rank), or whose sums would take more
 * memory than the draws (dense). Which iterations are kept depends on their numbers alone, so that
 * it is the same on any number of ranks.
 */
#pragma once

#include "emass/visitor.h"
#include "mass/estimator.h"
#include "par/grid.h"
#include "sampler/kernel/sampler.h"

typedef struct em_window {
    int64_t dim, n_chain; /* of this rank */
    int64_t skip;         /* every so many-th chain of the run is kept */
    int64_t n_slot;       /* iterations that it can hold; 0: nothing is kept */
    double from, every;   /* iterations from `from` on that are multiples of `every` */
    double *iteration;    /* [n_slot] in each slot; -1: none */
    double *row;          /* [n_chain][n_slot][2][dim]; begins with NaN where left out */
} em_window;

/* Samples that an estimate in the span of the samples is made of, at most: 200, or as many as 128
 * MB hold; work grows with their cube. Local. */
int64_t em_window_span(int64_t dim);

/* For pools of chains_per_pool chains, of which n_chain are on this rank, and windows of at most
 * `longest` iterations, of which about `most` samples are kept. Local. Errors: EM_EMEMORY. */
em_status em_window_create(int64_t chains_per_pool, int64_t n_chain, int64_t dim, int64_t longest,
                           int64_t most, em_window *out);
void em_window_release(em_window *window);

/* Sets the iterations that the next estimate uses: from .. to - 1. `from` never decreases. Local.
 */
void em_window_aim(em_window *window, int64_t from, int64_t to);

/* Takes what an iteration left in the block, where it is one of those. Local. */
void em_window_take(em_window *window, const em_block *block, int64_t iteration);

/* Leaves out what local chain `chain` has been so far. Local. */
void em_window_forget(em_window *window, int64_t chain);

/* The sample in a slot of chain `chain` of the run, which must be on this rank: a draw, then its
 * gradient, [2][dim]. NULL: none that the next estimate uses. Local. */
const double *em_window_sample(const em_window *window, const em_grid *grid, int64_t chain,
                               int64_t slot);

/* The samples of all chains of the run that are not outlying (NULL: none is), ordered by slot, then
 * by chain. Collective. Errors: EM_EMEMORY, agreed. Freed by em_release. */
em_status em_window_gather(const em_window *window, const em_grid *grid, const bool *outlying,
                           em_samples *out);

/* Those of one chain of this rank. Local. Errors: EM_EMEMORY. Freed by em_release. */
em_status em_window_of_chain(const em_window *window, int64_t chain, em_samples *out);

/* Shows its state to a visitor. Collective. Errors: the visitor's. */
em_status em_window_visit(em_window *window, const em_visitor *visitor);
