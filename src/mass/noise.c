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
#include "base/memory.h"
#include "mass/estimator.h"
#include "mass/moments.h"
#include "math/linalg.h"

#include <math.h>

static const double ridge = 1e-3;

static int64_t size(em_structure structure, int64_t dim)
{
    return 1 + em_moments_size(structure, dim);
}

static void observe(em_structure structure, int64_t dim, const em_observation *sample,
                    double *accumulator)
{
    accumulator[0]++;
    em_moments_add(structure, dim, sample->noise, accumulator + 1);
}

/* log|W|, from the diagonal of the factor of M. */
static double log_determinant(const em_mass *mass)
{
    const int64_t diagonal = mass->structure == EM_MASS_DENSE ? mass->stride + 1 : 1;
    double sum = 0;

    for (int64_t i = 0; i < mass->dim; i++)
        sum -= 2 * log(mass->factor[i * diagonal]);
    return sum;
}

static em_status estimate(const em_mass *current, const double *accumulator, double *inverse)
{
    const em_structure structure = current->structure;
    const int64_t dim = current->dim, elements = em_mass_size(structure, dim);
    const int64_t diagonal = structure == EM_MASS_DENSE ? dim + 1 : 1;
    const double n = accumulator[0];
    double trace = 0;
    em_mass *unscaled = NULL;
    em_status status = EM_OK;

    if (n < (structure == EM_MASS_DENSE ? 10 * (double)dim : 2))
        return EM_NONFINITE;
    em_moments_about_zero(structure, dim, n, accumulator + 1, inverse);
    for (int64_t i = 0; i < dim; i++)
        trace += inverse[i * diagonal];
    for (int64_t i = 0; i < dim; i++)
        inverse[i * diagonal] += ridge * trace / (double)dim;
    if (structure == EM_MASS_DENSE)
        status = em_invert_spd(dim, inverse, dim);
    else
        for (int64_t i = 0; i < dim; i++)
            inverse[i] = 1 / inverse[i];
    if (!status)
        status = em_mass_create(structure, dim, inverse, &unscaled);
    if (status)
        return status;
    const double scale = exp((log_determinant(current) - log_determinant(unscaled)) / (double)dim);
    em_mass_destroy(&unscaled);
    for (int64_t i = 0; i < elements; i++)
        inverse[i] *= scale;
    return em_all_finite(elements, inverse) ? EM_OK : EM_NONFINITE;
}

const em_estimator_ops em_noise_covariance = {
    .name = "noise",
    .doc = "mass proportional to the covariance of the minibatch gradient noise",
    .source = "the fixed line of SGNHT-EM; LEARNING 2",
    .windowed = true,
    .noise = true,
    .size = size,
    .observe = observe,
    .estimate = estimate,
};
