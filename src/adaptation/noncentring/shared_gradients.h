/*
 * The proof of priors (scale_derivative.h) on all ranks: rank 0 chooses positions, and the groups
 * of ranks divide the evaluations among them. `posterior`: in the model's coordinates; every
 * position is evaluated by itself, so gradients do not depend on the number of ranks. The number of
 * gradients of all ranks is added to *n_evaluated.
 */
#pragma once

#include "adaptation/prior_proofs/scale_derivative.h"
#include "par/grid.h"
#include "posterior/posterior.h"

/*
 * em_prove_priors on rank 0, whose prior [dim] all ranks then have; with_factors: em_prove_factors
 * too. samples: as many on all ranks; those of rank 0 are used. Collective. Errors, agreed:
 * EM_EMEMORY, EM_EMODEL.
 */
em_status em_prove_priors_together(em_posterior *posterior, const em_grid *grid, int64_t dim,
                                   const em_samples *samples, bool with_factors,
                                   em_normal_prior *prior, int64_t *n_evaluated);

/* With more than EM_MOST_SEARCHED parameters: em_prove_priors and em_prove_factors on rank 0. All
 * ranks then have prior [dim], and the map of what is proved in row [dim] (em_noncentring_of_many).
 * samples: as above. Collective. Errors, agreed: EM_EMEMORY, EM_EMODEL. */
em_status em_map_many_together(em_posterior *posterior, const em_grid *grid, int64_t dim,
                               const em_samples *samples, em_normal_prior *prior,
                               em_noncentring_row *row, int64_t *n_evaluated);

/* Random positions: independent coordinates, uniform with these means and standard deviations. */
typedef struct em_random_positions {
    const double *mean, *sd; /* [dim], of rank 0 */
    uint64_t seed;
    int64_t number; /* of the set of positions in the run */
} em_random_positions;

/* em_prove_priors on rank 0, at random positions and not at draws. All ranks then have prior [dim],
 * and the map of what is proved in row [dim]. Gradients there tell how much data determine the
 * members. Collective. Errors, agreed: EM_EMEMORY, EM_EMODEL. */
em_status em_prove_priors_at(em_posterior *posterior, const em_grid *grid, int64_t dim,
                             const em_random_positions *positions, em_normal_prior *prior,
                             em_noncentring_row *row, int64_t *n_evaluated);

/* The map at other positions of what is proved, to row [dim] of all ranks. Collective. Errors,
 * agreed: EM_EMEMORY, EM_EMODEL. */
em_status em_map_priors_at(em_posterior *posterior, const em_grid *grid, int64_t dim,
                           const em_random_positions *positions, const em_normal_prior *prior,
                           em_noncentring_row *row, int64_t *n_evaluated);
