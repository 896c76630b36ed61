/*
 * The mass of an outlying chain in the initial phase. The common mass is learned without this
 * chain, from draws in other regions, and may be too narrow in directions in which the chain is far
 * away. So at the end of each window in which it was outlying the chain gets its own diagonal mass:
 * as for the other chains the scale is that of positions over that of gradients, W_i = sd(x_i) /
 * rms(g_i). On a slope, where gradients are similar, the distance covered widens W_i from window to
 * window. The mean of the gradients is not subtracted, so that the chain does not overshoot. A
 * chain that is no longer outlying, and every chain at the end of the phase, has the common mass
 * again.
 */
#include "adaptation/adaptation_internal.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

/* The row of a chain has two numbers, N_DRAW and HAS_MASS, and then COLUMNS numbers for each
 * coordinate. */
enum { N_DRAW, HAS_MASS, FIRST, COLUMNS = 5, LEAST_DRAWS = 5 };

typedef struct row {
    double *n_draw, *has_mass;
    double *first;               /* [dim] position; the sums are of differences from it */
    double *sum, *squares;       /* [dim] of positions */
    double *gradients, *inverse; /* [dim] sum of squared gradients; the W in use */
} row;

int64_t em_outlying_row_size(int64_t dim)
{
    return FIRST + COLUMNS * dim;
}

static row row_of(const em_adapt *adapt, int64_t c)
{
    double *x = adapt->initial->outlying_row + c * em_outlying_row_size(adapt->dim);
    double *column = x + FIRST;
    const int64_t dim = adapt->dim;

    return (row){&x[N_DRAW],       &x[HAS_MASS],     column,          column + dim,
                 column + 2 * dim, column + 3 * dim, column + 4 * dim};
}

void em_outlying_observe(em_adapt *adapt, const em_block *block, int64_t c)
{
    const row of = row_of(adapt, c);

    if (!adapt->outlying[adapt->first_chain + c] || !em_is_sample(adapt, block, c))
        return;
    const double *state = em_noncentred_state(adapt, block, c);
    const double *theta = state ? state : block->theta + c * block->stride;
    const double *gradient = state ? state + adapt->dim : block->gradient + c * block->stride;
    if (*of.n_draw == 0)
        memcpy(of.first, theta, (size_t)adapt->dim * sizeof *theta);
    ++*of.n_draw;
    for (int64_t i = 0; i < adapt->dim; i++) {
        const double moved = theta[i] - of.first[i];
        of.sum[i] += moved;
        of.squares[i] += moved * moved;
        of.gradients[i] += gradient[i] * gradient[i];
    }
}

/* Computes of.inverse from the sums. Returns false if they do not allow an estimate. */
static bool estimate(int64_t dim, const row of)
{
    const double n = *of.n_draw;

    if (n < LEAST_DRAWS)
        return false;
    for (int64_t i = 0; i < dim; i++) {
        const double mean = of.sum[i] / n, variance = of.squares[i] / n - mean * mean;
        const double scale = sqrt(variance) / sqrt(of.gradients[i] / n);
        if (!(scale > 0) || isinf(scale))
            return false;
        of.inverse[i] = scale;
    }
    return true;
}

em_status em_set_outlying_mass(em_adapt *adapt, int64_t c)
{
    const row of = row_of(adapt, c);

    em_mass_destroy(&adapt->initial->outlying_mass[c]);
    if (*of.has_mass == 0)
        return EM_OK;
    const em_status status =
        em_mass_of_diagonal(&adapt->form, of.inverse, &adapt->initial->outlying_mass[c]);
    if (status > 0)
        *of.has_mass = 0;
    return status > 0 ? EM_OK : status;
}

em_status em_learn_outlying_masses(em_adapt *adapt)
{
    em_status status = EM_OK;

    for (int64_t c = 0; !status && c < adapt->n_local_chain; c++) {
        const row of = row_of(adapt, c);
        *of.has_mass = adapt->outlying[adapt->first_chain + c] && estimate(adapt->dim, of);
        memset(of.first, 0, (size_t)((COLUMNS - 1) * adapt->dim) * sizeof(double));
        *of.n_draw = 0;
        status = em_set_outlying_mass(adapt, c);
    }
    return em_agree(status);
}

void em_drop_outlying_masses(em_adapt *adapt)
{
    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        em_mass_destroy(&adapt->initial->outlying_mass[c]);
}
