#include "adaptation/trajectory/trajectory_criterion.h"

#include "math/special.h"

#include <math.h>

void em_lag_observe(int64_t dim, const double *x, double n_steps, int64_t iteration, double *sums)
{
    double *sum = sums + 1, *square = sum + dim, *product = square + dim;
    double *first = product + dim, *last = first + dim;

    sums[0] += n_steps;
    for (int64_t i = 0; i < dim; i++) {
        sum[i] += x[i];
        square[i] += x[i] * x[i];
        if (iteration == 0)
            first[i] = x[i];
        else
            product[i] += x[i] * last[i];
        last[i] = x[i];
    }
}

/* sum (x_t - m)(x_t-1 - m) = sum x_t x_t-1 - m (2 sum x - first - last) + n m^2 over the n pairs */
void em_lag_estimate(int64_t dim, double n_chain, double length, const double *pooled, double *r,
                     double *n_steps)
{
    const double *sum = pooled + 1, *square = sum + dim, *product = square + dim;
    const double *first = product + dim, *last = first + dim;
    const double n = n_chain * length, n_pair = n_chain * (length - 1);

    *n_steps = pooled[0] / n;
    for (int64_t i = 0; i < dim; i++) {
        const double mean = sum[i] / n, variance = square[i] / n - mean * mean;
        const double covariance =
            (product[i] - mean * (2 * sum[i] - first[i] - last[i])) / n_pair + mean * mean;
        r[i] = fmin(fmax(variance > 0 ? covariance / variance : 0.995, -0.9), 0.995);
    }
}

bool em_lag_is_long(int64_t dim, const double *r)
{
    for (int64_t i = 0; i < dim; i++)
        if (r[i] > 0.6)
            return true;
    return false;
}

static void efficiencies(int64_t dim, const double *r, double n_steps, double *out)
{
    for (int64_t i = 0; i < dim; i++)
        out[i] = (1 - r[i]) / (1 + r[i]) / n_steps;
}

/* Whether coordinate i is among the `count` least efficient ones. */
static bool is_among_worst(int64_t dim, const double *efficiency, int64_t i, int64_t count)
{
    int64_t worse = 0;

    for (int64_t k = 0; k < dim && worse < count; k++)
        worse += efficiency[k] < efficiency[i] || (efficiency[k] == efficiency[i] && k < i);
    return worse < count;
}

bool em_trajectory_is_better(int64_t dim, const double *r_short, double steps_short,
                             const double *r_long, double steps_long, double *scratch)
{
    const double least_gain = 0.85;
    const int64_t count = dim < 20 ? 1 : dim < 30 ? 2 : 3;
    double *before = scratch, *after = scratch + dim;
    double worst_before = INFINITY, worst_after = INFINITY, gain = 0, n = 0;

    efficiencies(dim, r_short, steps_short, before);
    efficiencies(dim, r_long, steps_long, after);
    for (int64_t i = 0; i < dim; i++) {
        worst_before = fmin(worst_before, before[i]);
        worst_after = fmin(worst_after, after[i]);
        if (is_among_worst(dim, before, i, count) || is_among_worst(dim, after, i, count)) {
            gain += log(after[i] / before[i]);
            n++;
        }
    }
    return worst_after > least_gain * worst_before || gain / n > log(least_gain);
}

/* ---------------------------------------------------------------- acceptance */

enum { SHORTEST = 20, FEWEST_DIVERGING = 3, FEWEST_LOST = 2 };

static const double lost_acceptance = 1e-3;

/* The largest share of divergences with which a run may converge, as EM_DRAWS_PER_DIVERGENCE has
 * it. A phase of 4 chains is too short to tell a larger share from none, so a single divergence
 * there is enough. In a Poisson regression whose counts are all 0 the law of the constant ends as
 * at a wall. Of 60 runs, 16 had too many divergences where lost trajectories alone told, 4 with
 * this and a target of 0.9, and none with 0.95. */
static const double most_diverging = 1e-3;

/* The energy error of leapfrog after many steps of size h has the mean dim h^4 / (32 (1 - h^2 / 4))
 * = m and the variance 2 m; the mean acceptance is then 2 Phi(-sqrt(m / 2)). */
static double leapfrog_step(int64_t dim, double acceptance)
{
    const double z = em_normal_quantile(1 - 0.5 * acceptance), m = 2 * z * z;
    const double q = 16 * m / (double)dim;

    return sqrt(sqrt(2 * q + 0.0625 * q * q) - 0.25 * q);
}

bool em_multistage_pays(int64_t dim, double acceptance, double step_size)
{
    return step_size >= fmin(1.5 * leapfrog_step(dim, acceptance), 1.1);
}

void em_acceptance_observe(double acceptance, bool diverging, bool typical,
                           em_acceptance_statistics *statistics)
{
    statistics->length++;
    statistics->acceptance += acceptance;
    statistics->n_diverging += diverging;
    statistics->n_lost += typical && (acceptance < lost_acceptance || diverging);
}

/*
 * How far below the mean the smallest of n mean acceptance rates over `length` iterations may be.
 * Acceptance rates have a standard deviation of at most 0.25 at a mean of 0.8 if curvature does not
 * vary. The smallest of n normal numbers is about sqrt(2 log n) standard deviations below their
 * mean; if curvature varies a little, the distance grows with log n. On 17 posteriors of
 * posteriordb it was 0.08 below at most with 4 chains, and 0.14 with 32, where this is 0.13 and
 * 0.22; on the eight schools, non-centred, 0.24 with 1000 chains, where this is 0.35. On gp_pois
 * and the centred eight schools one of 64 chains or more hardly moves.
 *
 * Measured there with 4 chains and 10 seeds each, this test alone chooses NUTS in 6 and in 4 runs.
 * ESS per 1000 gradients rises from 4.5 to 4.6 and from 2.3 to 2.7 in the geometric mean, from 0.2
 * to 1.1 and from 0.9 to 1.3 in the least. Single seeds lose (11.4 to 4.3). Their chains had not
 * yet entered the stiff part, and acceptance statistics do not show that. With a dense mass the
 * gradients mostly show it (adaptation/initial_phase.c).
 */
static double least_by_chance(double n_chain, double length)
{
    return 0.25 / sqrt(length) * (2 + log(n_chain));
}

em_acceptance_verdict em_judge_acceptance(int64_t n_chain,
                                          const em_acceptance_statistics *statistics,
                                          const bool *outlying, bool one_length, double most_lost)
{
    double n = 0, n_diverging = 0, n_lost = 0, length = 0, acceptance = 0, least = 1;

    for (int64_t c = 0; c < n_chain; c++)
        if (!outlying[c]) {
            n++;
            n_diverging += statistics[c].n_diverging;
            n_lost += statistics[c].n_lost;
            length += statistics[c].length;
            acceptance += statistics[c].acceptance;
            least = fmin(least, statistics[c].acceptance / statistics[c].length);
        }
    if (!(length >= SHORTEST * n))
        return EM_ACCEPTANCE_EVEN;
    if (one_length && least < acceptance / length - least_by_chance(n, length / n))
        return EM_ACCEPTANCE_UNEVEN;
    if (one_length && most_lost < 1 && n_diverging > most_diverging * length)
        return EM_ACCEPTANCE_DIVERGING;
    if (n_lost >= FEWEST_LOST && n_lost > most_lost * length)
        return EM_ACCEPTANCE_LOST;
    return one_length && n_diverging >= FEWEST_DIVERGING && n_diverging > 0.01 * length
               ? EM_ACCEPTANCE_UNEVEN
               : EM_ACCEPTANCE_EVEN;
}
