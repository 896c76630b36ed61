/*
 * The covariance V of the gradient noise, which a scalar thermostat absorbs when the mass is
 * proportional to it: with V^ from half squared differences of two independent minibatch gradients
 * at one position (LEARNING 5),
 *
 *     M = c (V^ + 1e-3 tr(V^) / D I),
 *
 * where c keeps the determinant of the current mass, so that the unit of time, and with it what a
 * step size means, stays what it was.
 */
#include "mass/estimator.h"
#include "mass/moments.h"
#include "math/linalg.h"

static const double ridge = 1e-3;

static em_status estimate(em_structure structure, int64_t dim, const double *current,
                          const double *accumulator, double *inverse)
{
    const int64_t diagonal = structure == EM_MASS_DENSE ? dim + 1 : 1;
    const double n = accumulator[0];
    double trace = 0;

    (void)current;
    if (n < (structure == EM_MASS_DENSE ? 10 * (double)dim : 2))
        return EM_NONFINITE;
    em_moments_about_zero(structure, dim, n, accumulator + 1, inverse);
    for (int64_t i = 0; i < dim; i++)
        trace += inverse[i * diagonal];
    for (int64_t i = 0; i < dim; i++)
        inverse[i * diagonal] += ridge * trace / (double)dim;
    if (structure == EM_MASS_DENSE)
        return em_invert_spd(dim, inverse, dim);
    for (int64_t i = 0; i < dim; i++)
        inverse[i] = 1 / inverse[i];
    return EM_OK;
}

const em_estimator_ops em_estimator_noise = {
    .name = "noise",
    .doc = "mass proportional to the covariance of the minibatch gradient noise",
    .source = "the fixed points of SGNHT-EM; LEARNING 2",
    .windowed = true,
    .noise = true,
    .keeps_determinant = true,
    .n_observed = 1,
    .observed = {offsetof(em_observation, noise)},
    .estimate = estimate,
};
