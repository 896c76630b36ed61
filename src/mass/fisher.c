/*
 * The W that minimises the Fisher divergence between the target and a Gaussian, from the
 * covariances C_x of the draws and C_g of the gradients: the SPD solution of W C_g W = C_x,
 *
 *     diag:   W_ii = sqrt(var x_i / var g_i), clamped to [1e-20, 1e20]
 *     dense:  W = C_g^-1/2 (C_g^1/2 C_x C_g^1/2)^1/2 C_g^-1/2,
 *
 * the dense one in coordinates in which the current W is the identity, and which are then scaled by
 * the diagonal one; there both covariances are shrunk to the identity, which has the weight of
 * nu = D min(1, 0.3 D / n) samples. So few samples correct the current W, and many replace it.
 * Apart from the shrinkage it is exact for a Gaussian target if n > D.
 */
#include "mass/fisher.h"
#include "base/memory.h"
#include "mass/moments.h"
#include "math/finite.h"
#include "math/linalg.h"

#include <math.h>
#include <string.h>

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

/* The covariances in coordinates in which the current W is the identity, and their scale. */
typedef struct whitened {
    double *root, *inverse_root; /* C and C^-1: W = C C^T */
    double *cx, *cg;             /* [dim][dim] like those, of C^-1 x and of C^T g */
    double *scale;               /* [dim] */
    double *work;                /* em_fisher_mean_work, at least 4 dim^2 */
} whitened;

/* S <- A S A^T; work [dim][dim]. */
static void transform(int64_t dim, const double *a, double *s, double *work)
{
    em_multiply(dim, a, s, dim, work);
    em_multiply_by_rows(dim, dim, dim, work, a, s);
}

/* Computes both covariances, scaled as scale_both does. `at` receives one allocation, whose first
 * array is `root`. Errors: EM_NONFINITE if they are not finite; EM_EMEMORY, EM_ENUMERIC. */
static em_status whiten(int64_t dim, const double *current, const double *accumulator, whitened *at)
{
    const int64_t square = dim * dim;
    const double n = accumulator[0];
    double *root = NULL;
    em_status status =
        em_allocate(4 * square + dim + em_fisher_mean_work(dim), sizeof *root, &root);

    *at = (whitened){.root = root};
    if (status)
        return status;
    at->inverse_root = root + square, at->cx = root + 2 * square, at->cg = root + 3 * square;
    at->scale = root + 4 * square, at->work = at->scale + dim;
    memcpy(root, current, (size_t)square * sizeof *root);
    status = em_cholesky(dim, root, dim);
    memcpy(at->inverse_root, root, (size_t)square * sizeof *root);
    status = status ? status : em_invert_lower(dim, at->inverse_root, dim);
    if (status)
        return status;
    em_moments_covariance(EM_MASS_DENSE, dim, n, accumulator + 1, at->cx);
    em_moments_covariance(EM_MASS_DENSE, dim, n,
                          accumulator + 1 + em_moments_size(EM_MASS_DENSE, dim), at->cg);
    transform(dim, at->inverse_root, at->cx, at->work);
    em_transpose(dim, root, at->work);
    transform(dim, at->work, at->cg, at->work + square);
    scale_both(dim, n, at->cx, at->cg, at->scale);
    return em_all_finite(2 * square, at->cx) ? EM_OK : EM_NONFINITE;
}

static em_status estimate_dense(int64_t dim, const double *current, const double *accumulator,
                                double *inverse)
{
    whitened at;
    em_status status = whiten(dim, current, accumulator, &at);

    status = status ? status : em_fisher_mean(dim, at.cx, at.cg, at.work, inverse);
    for (int64_t i = 0; !status && i < dim; i++)
        for (int64_t j = 0; j < dim; j++)
            inverse[i * dim + j] = inverse[i * dim + j] * at.scale[i] * at.scale[j];
    if (!status) {
        transform(dim, at.root, inverse, at.work);
        em_mirror_lower(dim, inverse, dim);
        status = em_all_finite(dim * dim, inverse) ? EM_OK : EM_NONFINITE;
    }
    em_release(&at.root);
    return status;
}

/* The eigenvalues of C_x C_g are those of L^T C_x L, where C_g = L L^T. */
static em_status unevenness(int64_t dim, const double *current, const double *accumulator,
                            double *out)
{
    const double n = accumulator[0];
    whitened at = {0};
    em_status status = n < 2 ? EM_NONFINITE : whiten(dim, current, accumulator, &at);

    status = status ? status : em_cholesky(dim, at.cg, dim);
    if (!status) {
        em_transpose(dim, at.cg, at.work);
        transform(dim, at.work, at.cx, at.work + dim * dim);
        status =
            em_all_finite(dim * dim, at.cx) ? em_eigen(dim, at.cx, dim, at.scale) : EM_NONFINITE;
    }
    if (!status)
        *out = at.scale[dim - 1] / pow(1 + sqrt((double)dim / n), 4);
    em_release(&at.root);
    return status;
}

static em_status estimate(em_structure structure, int64_t dim, const double *current,
                          const double *accumulator, double *inverse)
{
    if (accumulator[0] < 2)
        return EM_NONFINITE;
    return structure == EM_MASS_DENSE ? estimate_dense(dim, current, accumulator, inverse)
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
