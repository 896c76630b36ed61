#include "diagnostics/diag.h"

#include "math/finite.h"

#include <math.h>
#include <stdlib.h>

/* A shift and a scaling of draws. It subtracts one of the draws, whose digits all may have in
 * common, and multiplies by a power of two so that squares are finite. */
typedef struct transform {
    double factor, less;
} transform;

static double shifted(transform v, double draw)
{
    return draw * v.factor - v.less;
}

/* Mean and variance of a chain. They are computed from distances from its first draw, so that the
 * variance of a chain that stands still is exactly 0. The variance of one draw is 0. */
static double chain_mean(transform v, int64_t n, const double *draws, double *variance)
{
    const double first = shifted(v, draws[0]);
    double sum = 0, square = 0;

    for (int64_t i = 0; i < n; i++)
        sum += shifted(v, draws[i]) - first;
    const double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double distance = shifted(v, draws[i]) - first - mean;
        square += distance * distance;
    }
    *variance = n > 1 ? square / (double)(n - 1) : 0;
    return first + mean;
}

/* The mean of a superchain. The variance within it, of the means of its chains and of their draws,
 * is added to *within. */
static double superchain(transform v, int64_t n_chain, int64_t n_draw, const double *draws,
                         double *within)
{
    double mean = 0, square = 0, variance = 0;

    for (int64_t m = 0; m < n_chain; m++) { /* Welford's, one chain after the other */
        double of_chain;
        const double own = chain_mean(v, n_draw, draws + m * n_draw, &of_chain);
        const double change = own - mean;
        mean += change / (double)(m + 1);
        square += change * (own - mean);
        variance += of_chain;
    }
    *within += (n_chain > 1 ? square / (double)(n_chain - 1) : 0) + variance / (double)n_chain;
    return mean;
}

/* The power of two by which the draws are multiplied so that their squares are finite. */
static double factor_of(int64_t n, const double *draws)
{
    enum { FAR = 400, FARTHEST = 1000 };
    double largest = 0;
    int exponent;

    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(draws[i]));
    frexp(largest, &exponent);
    return abs(exponent) <= FAR ? 1 : ldexp(1, -exponent < FARTHEST ? -exponent : FARTHEST);
}

double em_nested_r_hat(int64_t n_superchain, int64_t n_chain, int64_t n_draw, const double *draws)
{
    const int64_t each = n_superchain > 0 ? n_chain / n_superchain : 0, n = n_chain * n_draw;
    double within = 0, mean = 0, square = 0;

    if (n_superchain < 2 || each < 1 || each * n_superchain != n_chain || n_draw < 1 ||
        !em_all_finite(n, draws) || em_all_equal(n, draws))
        return NAN;
    const double factor = factor_of(n, draws);
    const transform v = {factor, draws[0] * factor};
    for (int64_t k = 0; k < n_superchain; k++) {
        const double *of = draws + k * each * n_draw;
        const transform near = {factor,
                                of[0] * factor}; /* superchains may be far from each other */
        const double own = shifted(v, of[0]) + superchain(near, each, n_draw, of, &within);
        const double change = own - mean;
        mean += change / (double)(k + 1);
        square += change * (own - mean);
    }
    return sqrt(1 + square / (double)(n_superchain - 1) / (within / (double)n_superchain));
}
