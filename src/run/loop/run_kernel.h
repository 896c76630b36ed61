/* Private to the room: the samplers of a run, which take turns within an iteration, each with its
 * own mass and step size. */
#pragma once

#include "run/loop/engine.h"

/* Makes the samplers of the config and their blocks, adaptation apart. Local. Errors: EM_EMEMORY,
 * EM_ECONFIG. */
em_status em_kernels_create(em_engine *engine);

/* Ladders in place of samplers, and the block of what is at their targets. Collective. Errors,
 * agreed: EM_EMEMORY, EM_ECONFIG. */
em_status em_ladders_create(em_engine *engine);
void em_kernels_destroy(em_engine *engine); /* Collective. */

/* Whether a sampler evaluates the exact density of all data. Local. */
bool em_kernel_is_exact(const em_kernel *kernel);

/* Starts every sampler at the positions in engine->block. Collective. Errors: agreed. */
em_status em_kernels_start(em_engine *engine);

/* Iteration `iteration` (from 0) of every sampler, one after the other. Local, but that the
 * posterior may sum over shards. */
em_status em_kernels_step(em_engine *engine, int64_t iteration);

/* Iterations done at the next adaptation update after `done`, of any sampler that still adapts;
 * INT64_MAX: none. Local. */
int64_t em_kernels_next_update(const em_engine *engine, int64_t done);

/* The adaptation update after engine->done iterations, of every sampler that is due. `from`: the
 * iterations done when the segment began. *ended: warmup ended with it. Collective. Errors: agreed.
 */
em_status em_kernels_update(em_engine *engine, int64_t from, bool *ended);

/* Passes the state of samplers and adaptation to a visitor. Collective. */
em_status em_kernels_visit(em_engine *engine, const em_visitor *visitor);

/* About the variances of the posterior: the diagonals of the inverse masses, of the first chain,
 * which all have but where none is shared; 1 where a mass is too large to be formed. diagonal
 * [dim], the same on all ranks. Collective. Errors, agreed: EM_EMEMORY, those of em_mass_matrix. */
em_status em_kernels_inverse_mass(const em_engine *engine, double *diagonal);
