#include "model/regression/variate.h"

#include "emass/random.h"

#include <math.h>

double em_variate_uniform(em_variate *v)
{
    double u;

    em_draw_uniforms(v->draw, v->next++, 1, &u);
    return u;
}

double em_variate_normal(em_variate *v)
{
    double z;

    em_draw_normals(v->draw, v->next++, 1, &z);
    return z;
}

/* A gamma variate for a shape of 1 or more. */
static double gamma_from_1(em_variate *v, double shape)
{
    const double d = shape - 1. / 3, c = 1 / sqrt(9 * d);

    for (;;) {
        const double x = em_variate_normal(v), root = 1 + c * x, cube = root * root * root;
        const double u = em_variate_uniform(v);
        if (root > 0 && log(u) < x * x / 2 + d * (1 - cube + log(cube)))
            return d * cube;
    }
}

double em_variate_gamma(em_variate *v, double shape)
{
    if (shape >= 1)
        return gamma_from_1(v, shape);
    const double larger = gamma_from_1(v, shape + 1);
    return larger * pow(em_variate_uniform(v), 1 / shape);
}

/* Draws the first k whose distribution function is above a uniform number. Far out, the sum of all
 * p may stay below that number because of rounding. */
static double poisson_by_inversion(em_variate *v, double mean)
{
    double u = em_variate_uniform(v), p = exp(-mean), k = 0;

    while (u > p && k < 1000) {
        u -= p;
        p *= mean / ++k;
    }
    return k;
}

static double poisson_by_rejection(em_variate *v, double mean)
{
    const double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b;
    const double alpha = 1.1239 + 1.1328 / (b - 3.4), certain = 0.9277 - 3.6224 / (b - 2);

    for (;;) {
        const double x = em_variate_uniform(v) - 0.5, y = em_variate_uniform(v);
        const double side = 0.5 - fabs(x), k = floor((2 * a / side + b) * x + mean + 0.43);
        if (side >= 0.07 && y <= certain)
            return k;
        if (k >= 0 && !(side < 0.013 && y > side) &&
            log(y * alpha / (a / (side * side) + b)) <= k * log(mean) - mean - lgamma(k + 1))
            return k;
    }
}

double em_variate_poisson(em_variate *v, double mean)
{
    return mean < 10 ? poisson_by_inversion(v, mean) : poisson_by_rejection(v, mean);
}
