#include "adaptation/mass_window/subsampling_interval.h"

#include "math/rng.h"
#include "math/special.h"

#include <math.h>
#include <string.h>

void em_subsampling_interval_observe(int64_t dim, const double *momentum, const double *velocity,
                                     double *accumulator)
{
    double *p = accumulator + 1, *v = p + dim, *v_squared = v + dim;

    accumulator[0]++;
    for (int64_t i = 0; i < dim; i++) {
        p[i] += momentum[i];
        v[i] += velocity[i];
        v_squared[i] += velocity[i] * velocity[i];
    }
}

/* A Poisson variate by inversion. Means are limited to 500, which is more than the length of any
 * E-step. */
static double poisson(double mean, double uniform)
{
    double term = exp(-fmin(mean, 500)), sum = term, k = 0;

    while (sum < uniform && k < 1000) {
        k++;
        term *= mean / k;
        sum += term;
    }
    return k;
}

bool em_subsampling_interval_takes(const em_mass_options *options, uint64_t seed, int64_t m_step,
                                   int64_t epoch)
{
    const em_stream stream = {seed, EM_ALL_CHAINS, (uint64_t)m_step, EM_RNG_SUBSAMPLE};
    double offset = 0;

    for (int64_t i = 1; offset < (double)epoch; i++)
        offset += 1 + poisson(options->rule_nu * pow((double)i, options->rule_d),
                              em_uniform(&stream, (uint64_t)i));
    return offset == (double)epoch;
}

bool em_subsampling_interval_holds(const em_mass_options *options, const em_mass *updated,
                                   const double *accumulator, double *scratch)
{
    const int64_t dim = updated->dim;
    const double n = accumulator[0];
    const double *p = accumulator + 1, *v = p + dim, *v_squared = v + dim;
    const double z = em_normal_quantile(1 - options->rule_alpha / (2 * 2 * (double)dim));
    double *mean_p = scratch, *mean_v = scratch + updated->stride;

    memset(mean_p, 0, (size_t)updated->stride * sizeof *mean_p);
    for (int64_t i = 0; i < dim; i++)
        mean_p[i] = p[i] / n;
    em_mass_velocity(&updated, 1, mean_p, mean_v);
    for (int64_t i = 0; i < dim; i++) {
        const double mean = v[i] / n, variance = v_squared[i] / n - mean * mean;
        if (!(fabs(mean_v[i] - mean) <= z * sqrt(variance / n)))
            return false;
    }
    return n > 0;
}
