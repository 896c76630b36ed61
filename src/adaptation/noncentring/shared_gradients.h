/*
 * The proof of priors (scale_derivative.h) on all ranks: rank 0 chooses positions, and the groups
 * of ranks divide the evaluations among them.
 */
#pragma once

#include "adaptation/noncentring/scale_derivative.h"
#include "par/grid.h"
#include "posterior/posterior.h"

/*
 * em_prove_priors on rank 0, whose prior [dim] all ranks then have. `posterior`: in the model's
 * coordinates; every position is evaluated by itself, so gradients do not depend on the number of
 * ranks. samples: as many on all ranks; those of rank 0 are used.
 * Collective. Errors, agreed: EM_EMEMORY, EM_EMODEL.
 */
em_status em_prove_priors_together(em_posterior *posterior, const em_grid *grid, int64_t dim,
                                   const em_samples *samples, em_normal_prior *prior);
