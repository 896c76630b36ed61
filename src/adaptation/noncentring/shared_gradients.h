/*
 * The proof of priors (scale_derivative.h) on all ranks: rank 0 chooses positions, and the groups
 * of ranks divide the evaluations among them. `posterior`: in the model's coordinates; every
 * position is evaluated by itself, so gradients do not depend on the number of ranks.
 */
#pragma once

#include "adaptation/noncentring/scale_derivative.h"
#include "par/grid.h"
#include "posterior/posterior.h"

/*
 * em_prove_priors on rank 0, whose prior [dim] all ranks then have. samples: as many on all ranks;
 * those of rank 0 are used. Collective. Errors, agreed: EM_EMEMORY, EM_EMODEL.
 */
em_status em_prove_priors_together(em_posterior *posterior, const em_grid *grid, int64_t dim,
                                   const em_samples *samples, em_normal_prior *prior);

/*
 * Proves priors before there are draws, at random positions, and writes to row [dim], on all ranks,
 * the map of what is proved. Positions are uniform within 1 of `centre` [dim] in each coordinate.
 * Collective. Errors, agreed: EM_EMEMORY, EM_EMODEL.
 */
em_status em_prove_priors_near(em_posterior *posterior, const em_grid *grid, int64_t dim,
                               const double *centre, uint64_t seed, em_noncentring_row *row);
