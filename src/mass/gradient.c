/*
 * The inverse second moment of the gradients of the log density: E[g g^T] = A for a Gaussian of
 * precision A, so W = (E[g g^T])^-1. Shrunk to its own diagonal with the weight of D + 2 samples,
 * so that it exists from the second sample on.
 */
#include "mass/estimator.h"
#include "mass/moments.h"
#include "math/finite.h"
#include "math/linalg.h"

static em_status estimate_dense(int64_t dim, const double *accumulator, double *inverse)
{
    const double n = accumulator[0];

    em_moments_about_zero(EM_MASS_DENSE, dim, n, accumulator + 1, inverse);
    for (int64_t i = 0; i < dim; i++)
        inverse[i * dim + i] *= 1 + 1 / n;
    return em_all_finite(dim * dim, inverse) ? em_invert_spd(dim, inverse, dim) : EM_NONFINITE;
}

static em_status estimate(em_structure structure, int64_t dim, const double *current,
                          const double *accumulator, double *inverse)
{
    (void)current;
    if (accumulator[0] < (structure == EM_MASS_DENSE ? 2 * (double)dim : 2))
        return EM_NONFINITE;
    if (structure == EM_MASS_DENSE)
        return estimate_dense(dim, accumulator, inverse);
    em_moments_about_zero(EM_MASS_DIAG, dim, accumulator[0], accumulator + 1, inverse);
    for (int64_t i = 0; i < dim; i++)
        inverse[i] = 1 / inverse[i];
    return em_all_finite(dim, inverse) ? EM_OK : EM_NONFINITE;
}

const em_estimator_ops em_estimator_gradient = {
    .name = "gradient",
    .doc = "inverse second moment of the gradients of the log density",
    .source = "E[g g^T] is the Fisher information of a Gaussian target",
    .windowed = true,
    .n_observed = 1,
    .observed = {offsetof(em_observation, gradient)},
    .estimate = estimate,
};
