/*
 * The papers' criterion: the inverse of the second moment of the momenta, C = (1/S) sum p p^T, not
 * centred because their mean is known to be zero (Roychowdhury & Parthasarathy, Algorithm 1 and the
 * text after equation 5), shrunk to the current mass and debiased (EQUATIONS 14):
 *
 *     C~ = (S C + nu0 M) / (S + nu0),  nu0 = D + 2
 *     W  = [1 - S (D + 1) / (S + nu0)^2] C~^-1        dense
 *     W_ii = (S - 2) / sum p_i^2                      diag
 *
 * With exact gradients the momenta are N(0, M) whatever M is, so C estimates the current mass and
 * nothing is learned; the adaptation engine prints the diagnostic that shows it.
 */
#include "base/memory.h"
#include "mass/estimator.h"
#include "mass/moments.h"
#include "math/finite.h"
#include "math/linalg.h"

#include <math.h>
#include <string.h>

static em_status estimate_diag(int64_t dim, const double *accumulator, double *inverse)
{
    const double s = accumulator[0], *squares = accumulator + 1 + dim;

    if (s <= 2)
        return EM_NONFINITE;
    for (int64_t i = 0; i < dim; i++)
        inverse[i] = (s - 2) / squares[i];
    return em_all_finite(dim, inverse) ? EM_OK : EM_NONFINITE;
}

static em_status estimate_dense(int64_t dim, const double *current, const double *accumulator,
                                double *inverse)
{
    const double s = accumulator[0], d = (double)dim, nu0 = d + 2;
    const double debias = 1 - s * (d + 1) / ((s + nu0) * (s + nu0));
    EM_SCOPED double *mass = NULL;

    if (s <= d + 1)
        return EM_NONFINITE;
    em_status status = em_allocate(dim * dim, sizeof *mass, &mass);
    if (status)
        return status;
    memcpy(mass, current, (size_t)(dim * dim) * sizeof *mass);
    status = em_invert_spd(dim, mass, dim);
    em_moments_about_zero(EM_MASS_DENSE, dim, s, accumulator + 1, inverse);
    for (int64_t i = 0; i < dim * dim; i++)
        inverse[i] = (s * inverse[i] + nu0 * mass[i]) / (s + nu0);
    status = status ? status : em_invert_spd(dim, inverse, dim);
    for (int64_t i = 0; !status && i < dim * dim; i++)
        inverse[i] *= debias;
    return status;
}

static em_status estimate(em_structure structure, int64_t dim, const double *current,
                          const double *accumulator, double *inverse)
{
    return structure == EM_MASS_DENSE ? estimate_dense(dim, current, accumulator, inverse)
                                      : estimate_diag(dim, accumulator, inverse);
}

/* (WC)_ii for the second moment C of the momenta. */
static double product_diagonal(em_structure structure, int64_t dim, const double *current,
                               const double *accumulator, int64_t i)
{
    const double s = accumulator[0], *product = accumulator + 1 + dim;
    double sum = 0;

    if (structure == EM_MASS_DIAG)
        return current[i] * product[i] / s;
    for (int64_t j = 0; j < dim; j++) {
        const int64_t row = i > j ? i : j, column = i > j ? j : i;
        sum += current[i * dim + j] * product[row * (row + 1) / 2 + column] / s;
    }
    return sum;
}

static void deviation(em_structure structure, int64_t dim, const double *current,
                      const double *accumulator, double *trace, double *largest)
{
    for (int64_t i = 0; i < dim; i++) {
        const double element = product_diagonal(structure, dim, current, accumulator, i);
        *trace += element;
        *largest = fmax(*largest, fabs(element - 1));
    }
}

const em_estimator_ops em_estimator_momentum = {
    .name = "momentum",
    .doc = "inverse second moment of the momenta, as in the papers; learns nothing from exact "
           "gradients",
    .source = "Roychowdhury & Parthasarathy 2017, Algorithm 1 and eq 5",
    .n_observed = 1,
    .observed = {offsetof(em_observation, momentum)},
    .estimate = estimate,
    .deviation = deviation,
};
