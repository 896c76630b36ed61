/*
 * The W that minimises the Fisher divergence between the target and a Gaussian, from the
 * covariances C_x of the draws and C_g of the gradients: the SPD solution of W C_g W = C_x,
 *
 *     diag:   W_ii = sqrt(var x_i / var g_i), clamped to [1e-20, 1e20]
 *     dense:  W = C_g^-1/2 (C_g^1/2 C_x C_g^1/2)^1/2 C_g^-1/2,
 *
 * the dense one after scaling by the diagonal one; there both covariances are shrunk to the
 * identity, which has the weight of nu = D min(1, 0.3 D / n) samples. Apart from the shrinkage it
 * is exact for a Gaussian target if n > D.
 */
#include "mass/fisher.h"
#include "base/memory.h"
#include "mass/moments.h"
#include "math/finite.h"
#include "math/linalg.h"

#include <math.h>

static double diagonal_element(double variance_x, double variance_g)
{
    return fmin(fmax(sqrt(variance_x / variance_g), 1e-20), 1e20);
}

static em_status estimate_diag(int64_t dim, const double *accumulator, double *inverse)
{
    const double n = accumulator[0];
    EM_SCOPED double *variance_g = NULL;
    em_status status = em_allocate(dim, sizeof *variance_g, &variance_g);

    if (status)
        return status;
    em_moments_covariance(EM_MASS_DIAG, dim, n, accumulator + 1, inverse);
    em_moments_covariance(EM_MASS_DIAG, dim, n,
                          accumulator + 1 + em_moments_size(EM_MASS_DIAG, dim), variance_g);
    for (int64_t i = 0; i < dim; i++)
        inverse[i] = diagonal_element(inverse[i], variance_g[i]);
    return em_all_finite(dim, inverse) ? EM_OK : EM_NONFINITE;
}

/* Scales both covariances so that their diagonals agree, and regularises them there. */
static void scale_both(int64_t dim, double n, double *cx, double *cg, double *scale)
{
    for (int64_t i = 0; i < dim; i++)
        scale[i] = sqrt(diagonal_element(cx[i * dim + i], cg[i * dim + i]));
    for (int64_t i = 0; i < dim; i++)
        for (int64_t j = 0; j < dim; j++) {
            cx[i * dim + j] /= scale[i] * scale[j];
            cg[i * dim + j] *= scale[i] * scale[j];
        }
    /* In this frame both have the diagonal sqrt(var x var g), near 1 for a Gaussian. */
    const double d = (double)dim, nu = d * fmin(1, 0.3 * d / n), weight = n / (n + nu);
    for (int64_t i = 0; i < dim * dim; i++) {
        cx[i] *= weight;
        cg[i] *= weight;
    }
    for (int64_t i = 0; i < dim; i++) {
        cx[i * dim + i] += 1 - weight;
        cg[i * dim + i] += 1 - weight;
    }
}

/* Computes both covariances, scaled as scale_both does. Returns false if they are not finite. */
static bool covariances(int64_t dim, const double *accumulator, double *cx, double *cg,
                        double *scale)
{
    const double n = accumulator[0];

    em_moments_covariance(EM_MASS_DENSE, dim, n, accumulator + 1, cx);
    em_moments_covariance(EM_MASS_DENSE, dim, n,
                          accumulator + 1 + em_moments_size(EM_MASS_DENSE, dim), cg);
    scale_both(dim, n, cx, cg, scale);
    return em_all_finite(dim * dim, cx) && em_all_finite(dim * dim, cg);
}

static em_status estimate_dense(int64_t dim, const double *accumulator, double *inverse)
{
    const int64_t square = dim * dim;
    EM_SCOPED double *cx = NULL;
    em_status status = em_allocate(2 * square + dim + em_fisher_mean_work(dim), sizeof *cx, &cx);

    if (status)
        return status;
    double *cg = cx + square, *scale = cg + square, *work = scale + dim;
    status = covariances(dim, accumulator, cx, cg, scale)
                 ? em_fisher_mean(dim, cx, cg, work, inverse)
                 : EM_NONFINITE;
    for (int64_t i = 0; !status && i < dim; i++)
        for (int64_t j = 0; j < dim; j++)
            inverse[i * dim + j] = inverse[i * dim + j] * scale[i] * scale[j];
    if (!status && !em_all_finite(square, inverse))
        status = EM_NONFINITE;
    return status;
}

/* The eigenvalues of C_x C_g are those of L^T C_x L, where C_g = L L^T. */
static em_status unevenness(int64_t dim, const double *accumulator, double *out)
{
    const int64_t square = dim * dim;
    const double n = accumulator[0];
    EM_SCOPED double *cx = NULL;
    em_status status = n < 2 ? EM_NONFINITE : em_allocate(4 * square + 2 * dim, sizeof *cx, &cx);

    if (status)
        return status;
    double *l = cx + square, *transposed = l + square, *product = transposed + square;
    double *scale = product + square, *value = scale + dim;
    status = covariances(dim, accumulator, cx, l, scale) ? em_cholesky(dim, l, dim) : EM_NONFINITE;
    if (!status) {
        em_transpose(dim, l, transposed);
        em_multiply(dim, transposed, cx, dim, product);
        em_multiply(dim, product, l, dim, cx);
        status = em_all_finite(square, cx) ? em_eigen(dim, cx, dim, value) : EM_NONFINITE;
    }
    if (!status)
        *out = value[dim - 1] / pow(1 + sqrt((double)dim / n), 4);
    return status;
}

static em_status estimate(em_structure structure, int64_t dim, const double *current,
                          const double *accumulator, double *inverse)
{
    (void)current;
    if (accumulator[0] < 2)
        return EM_NONFINITE;
    return structure == EM_MASS_DENSE ? estimate_dense(dim, accumulator, inverse)
                                      : estimate_diag(dim, accumulator, inverse);
}

const em_estimator_ops em_estimator_fisher = {
    .name = "fisher",
    .doc = "least Fisher divergence from the target, from draws and gradients",
    .source = "Seyboldt, Carlson, Carpenter 2024 (nutpie); dense: W Cg W = Cx",
    .windowed = true,
    .n_observed = 2,
    .observed = {offsetof(em_observation, theta), offsetof(em_observation, gradient)},
    .estimate = estimate,
    .add_directions = em_fisher_directions,
    .unevenness = unevenness,
};
