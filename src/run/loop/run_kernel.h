/* Private to this folder: the samplers of a run, which alternate within an iteration, each with its
 * own mass and step size. */
#pragma once

#include "run/loop/engine.h"

/* Creates the samplers of the config and their blocks, without adaptation, or ladders in their
 * place. Local, but Collective for ladders, whose errors are agreed. Errors: EM_EMEMORY,
 * EM_ECONFIG. */
em_status em_kernels_create(em_engine *engine);

/* Creates ladders in place of samplers, and the block of their draws. Collective. Errors, agreed:
 * EM_EMEMORY, EM_ECONFIG. */
em_status em_ladders_create(em_engine *engine);
void em_kernels_destroy(em_engine *engine); /* Collective. */

/* Whether a sampler evaluates the exact density of all data. Local. */
static inline bool em_kernel_is_exact(const em_kernel *kernel)
{
    return !kernel->options->ops->by_model &&
           !em_takes_minibatches(kernel->options->ops, kernel->options->options);
}

/* Starts every sampler at the positions in engine->block. Collective. Errors: agreed. */
em_status em_kernels_start(em_engine *engine);

/* At the end of warmup, pools over all chains what the model has learned. Collective. */
em_status em_kernels_pool(em_engine *engine);

/* Runs iteration `iteration` (from 0) of every sampler, one after the other. Local, but the
 * posterior may sum over shards. */
em_status em_kernels_step(em_engine *engine, int64_t iteration);

/* Iterations done at the next adaptation update after `done`, for the samplers that still adapt;
 * INT64_MAX: none. Local. */
int64_t em_kernels_next_update(const em_engine *engine, int64_t done);

/* The adaptation update after engine->done iterations, of every sampler that is due. `from`: the
 * iterations done when the segment began. *ended: whether warmup ended with it. Collective. Errors:
 * agreed. */
em_status em_kernels_update(em_engine *engine, int64_t from, bool *ended);

/* Passes the state of samplers and adaptation to a visitor. Collective. */
em_status em_kernels_visit(em_engine *engine, const em_visitor *visitor);

/* The map to the coordinates in which one kernel moves; NULL: the model's, or there are several
 * kernels. Local. */
static inline const em_noncentring *em_kernels_map(const em_engine *engine)
{
    return engine->n_kernel == 1 ? em_adapt_noncentring(engine->kernel[0].adapt) : NULL;
}

/* Approximate variances of the posterior, diagonal [dim], equal on all ranks: the diagonals of the
 * inverse masses of the first chain, which are those of all chains if they share masses. They are 1
 * for a mass that is too large to be formed as a matrix. Collective. Errors, agreed: EM_EMEMORY,
 * those of em_mass_matrix. */
em_status em_kernels_inverse_mass(const em_engine *engine, double *diagonal);
