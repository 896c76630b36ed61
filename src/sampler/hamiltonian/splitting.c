#include "sampler/hamiltonian/splitting.h"

#include <math.h>

const em_splitting em_leapfrog = {.n_stage = 1, .kick = {0.5, 0.5}, .drift = {1}};

/* The factor of the energy error of a harmonic oscillator of frequency 1 that depends on b. */
static double two_stage_error(double b, double h)
{
    return 1 - 6 * b + 4 * b * b + 2 * b * b * (0.5 - b) * h * h;
}

static double three_stage_error(double b, double h)
{
    const double b2 = b * b, b3 = b2 * b;

    return 0.0625 - b + 4.75 * b2 - 8 * b3 + 3 * b2 * b2 -
           b2 * h * h * (b3 - 1.25 * b2 + 0.5 * b - 0.0625);
}

/* The root of a factor that is positive at `low` and negative at `high`. */
static double find_root(double (*error)(double, double), double h, double low, double high)
{
    for (int i = 0; i < 52; i++) {
        const double middle = 0.5 * (low + high);
        if (error(middle, h) > 0)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

em_splitting em_splitting_create(int n_stage, double h)
{
    const double margin = 1.1;

    if (n_stage == 2) {
        const double b = find_root(two_stage_error, margin * fmin(h, 2.5), 0.18, 0.25);
        return (em_splitting){2, {b, 1 - 2 * b, b}, {0.5, 0.5}};
    }
    const double b = find_root(three_stage_error, margin * fmin(h, 3.75), 0.1, 0.15);
    const double a = (0.5 - b) / (2 - 6 * b);
    return (em_splitting){3, {b, 0.5 - b, 0.5 - b, b}, {a, 1 - 2 * a, a}};
}
