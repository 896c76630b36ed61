/*
 * The covariance of the draws, shrunk as in Stan: W = n/(n+5) Cov(theta) + 1e-3 5/(n+5) I.
 */
#include "mass/estimator.h"
#include "mass/moments.h"
#include "math/finite.h"

static em_status estimate(em_structure structure, int64_t dim, const double *current,
                          const double *accumulator, double *inverse)
{
    const int64_t elements = em_mass_size(structure, dim);
    const int64_t diagonal = structure == EM_MASS_DENSE ? dim + 1 : 1;
    const double n = accumulator[0], weight = n / (n + 5);

    (void)current;
    if (n < (structure == EM_MASS_DENSE ? 2 * (double)dim : 2))
        return EM_NONFINITE;
    em_moments_covariance(structure, dim, n, accumulator + 1, inverse);
    for (int64_t i = 0; i < elements; i++)
        inverse[i] *= weight;
    for (int64_t i = 0; i < dim; i++)
        inverse[i * diagonal] += 1e-3 * (1 - weight);
    return em_all_finite(elements, inverse) ? EM_OK : EM_NONFINITE;
}

const em_estimator_ops em_estimator_variance = {
    .name = "variance",
    .doc = "covariance of the draws, shrunk as in Stan",
    .source = "Stan reference manual, covariance adaptation",
    .windowed = true,
    .n_observed = 1,
    .observed = {offsetof(em_observation, theta)},
    .estimate = estimate,
};
