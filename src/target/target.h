/* The density a sampler sees: prior + likelihood of a model, summed over the shards of the data. */
#ifndef EM_TARGET_TARGET_H
#define EM_TARGET_TARGET_H

#include "emass/model.h"
#include "par/grid.h"

#include <stdint.h>

typedef struct em_target em_target;

/* For blocks of up to `n_chain` chains. `model` and `grid` outlive it. Local. */
em_status em_target_create(em_model *model, const em_grid *grid, int64_t n_chain, em_target **out);
void em_target_destroy(em_target **target);

/*
 * log_density[c] and gradient[c][0..dim) of the posterior at theta[c], for all chains of the block
 * in one call; panels are [n_chain][stride] with zero padding, which stays zero in the gradient.
 * Collective over the ranks of a group (Local for one shard). Errors: EM_EMODEL. A density that is
 * not finite is reported by its value.
 */
em_status em_target_evaluate(em_target *target, int64_t n_chain, const double *theta,
                             double *log_density, double *gradient);

const em_model *em_target_model(const em_target *target); /* Local. */

/* Number of (chain, gradient) evaluations so far on this rank. Local. */
int64_t em_target_evaluations(const em_target *target);

#endif
