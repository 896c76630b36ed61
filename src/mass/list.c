#include "mass/estimator.h"

#include <stddef.h>

extern const em_estimator_ops em_momentum, em_gradient, em_noise_covariance;

/* No M-step: the mass stays as it starts. */
static const em_estimator_ops none = {
    .name = "none",
    .doc = "keep the identity mass; only the step size adapts",
    .source = "-",
};

/* The order must be that of the names in adaptation/mass_window/mass_options.c. */
const em_estimator_ops *const em_estimators[] = {
    &none, &em_momentum, &em_fisher, &em_variance, &em_gradient, &em_noise_covariance, NULL};

/* The order must be that of the names in adaptation/mass_window/mass_options.c after "auto". */
const em_mass_ops *const em_mass_structures[] = {&em_mass_diag, &em_mass_dense,
                                                 &em_mass_block_diagonal, &em_mass_low_rank, NULL};
