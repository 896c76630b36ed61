/*
 * The W that minimises the Fisher divergence between the target and a Gaussian, from the
 * covariances C_x of the draws and C_g of the gradients: the SPD solution of W C_g W = C_x,
 *
 *     diag:   W_ii = sqrt(var x_i / var g_i), clamped to [1e-20, 1e20]
 *     dense:  W = C_g^-1/2 (C_g^1/2 C_x C_g^1/2)^1/2 C_g^-1/2,
 *
 * the dense one after scaling by the diagonal one; there both covariances are shrunk to the
 * identity as if nu = D min(1, 0.3 D / n) of the samples had said so. For a Gaussian target it is
 * exact once n > D, but for that.
 */
#include "base/memory.h"
#include "mass/estimator.h"
#include "mass/moments.h"
#include "math/linalg.h"

#include <math.h>

static int64_t size(em_structure structure, int64_t dim)
{
    return 1 + 2 * em_moments_size(structure, dim);
}

static void observe(em_structure structure, int64_t dim, const em_observation *sample,
                    double *accumulator)
{
    accumulator[0]++;
    em_moments_add(structure, dim, sample->theta, accumulator + 1);
    em_moments_add(structure, dim, sample->gradient,
                   accumulator + 1 + em_moments_size(structure, dim));
}

static void recentre(em_structure structure, int64_t dim, const double *shift, double *accumulator)
{
    em_moments_shift(structure, dim, accumulator[0], shift, accumulator + 1);
}

static double diagonal_element(double variance_x, double variance_g)
{
    return fmin(fmax(sqrt(variance_x / variance_g), 1e-20), 1e20);
}

static em_status estimate_diag(int64_t dim, const double *accumulator, double *inverse)
{
    const double n = accumulator[0];
    double *variance_g = NULL;
    em_status status = em_allocate(dim, sizeof *variance_g, &variance_g);

    if (status)
        return status;
    em_moments_covariance(EM_MASS_DIAG, dim, n, accumulator + 1, inverse);
    em_moments_covariance(EM_MASS_DIAG, dim, n,
                          accumulator + 1 + em_moments_size(EM_MASS_DIAG, dim), variance_g);
    for (int64_t i = 0; i < dim; i++)
        inverse[i] = diagonal_element(inverse[i], variance_g[i]);
    em_release(&variance_g);
    return em_all_finite(dim, inverse) ? EM_OK : EM_NONFINITE;
}

/* Work space of the dense estimate, all [dim][dim] but the two vectors. */
typedef struct em_scaled {
    double *cx, *cg, *root, *inverse_root, *a, *b; /* matrices */
    double *scale, *value;                         /* vectors */
} em_scaled;

/* f(S) for the symmetric S = vectors^T diag(value) vectors: f is power of the eigenvalues. */
static em_status power(int64_t dim, const double *vectors, const double *value, double exponent,
                       double *scratch, double *out)
{
    for (int64_t i = 0; i < dim; i++)
        scratch[i] = pow(value[i], exponent);
    return em_spectral(dim, vectors, dim, scratch, out);
}

static bool all_positive(int64_t n, const double *x)
{
    for (int64_t i = 0; i < n; i++)
        if (!(x[i] > 0) || !isfinite(x[i]))
            return false;
    return true;
}

/* Scales both covariances so that their diagonals agree, and regularises them there. */
static void scale(int64_t dim, double n, em_scaled *s)
{
    for (int64_t i = 0; i < dim; i++)
        s->scale[i] = sqrt(diagonal_element(s->cx[i * dim + i], s->cg[i * dim + i]));
    for (int64_t i = 0; i < dim; i++)
        for (int64_t j = 0; j < dim; j++) {
            s->cx[i * dim + j] /= s->scale[i] * s->scale[j];
            s->cg[i * dim + j] *= s->scale[i] * s->scale[j];
        }
    /* In this frame both have the diagonal sqrt(var x var g), near 1 for a Gaussian. */
    const double d = (double)dim, nu = d * fmin(1, 0.3 * d / n), weight = n / (n + nu);
    for (int64_t i = 0; i < dim * dim; i++) {
        s->cx[i] *= weight;
        s->cg[i] *= weight;
    }
    for (int64_t i = 0; i < dim; i++) {
        s->cx[i * dim + i] += 1 - weight;
        s->cg[i * dim + i] += 1 - weight;
    }
}

/* W C_g W = C_x in the scaled frame, then back. */
static em_status solve(int64_t dim, em_scaled *s, double *inverse)
{
    double *scratch = s->value + dim;
    em_status status = em_eigen(dim, s->cg, dim, s->value);

    if (status || !all_positive(dim, s->value))
        return status ? status : EM_NONFINITE;
    status = power(dim, s->cg, s->value, 0.5, scratch, s->root);
    if (!status)
        status = power(dim, s->cg, s->value, -0.5, scratch, s->inverse_root);
    if (status)
        return status;
    em_multiply(dim, s->root, s->cx, dim, s->a);
    em_multiply(dim, s->a, s->root, dim, s->b);
    status = em_eigen(dim, s->b, dim, s->value);
    if (status || !all_positive(dim, s->value))
        return status ? status : EM_NONFINITE;
    status = power(dim, s->b, s->value, 0.5, scratch, s->a);
    if (status)
        return status;
    em_multiply(dim, s->inverse_root, s->a, dim, s->root);
    em_multiply(dim, s->root, s->inverse_root, dim, s->a);
    for (int64_t i = 0; i < dim; i++)
        for (int64_t j = 0; j < dim; j++)
            inverse[i * dim + j] =
                0.5 * (s->a[i * dim + j] + s->a[j * dim + i]) * s->scale[i] * s->scale[j];
    return em_all_finite(dim * dim, inverse) ? EM_OK : EM_NONFINITE;
}

static em_status estimate_dense(int64_t dim, const double *accumulator, double *inverse)
{
    const int64_t square = dim * dim;
    const double n = accumulator[0];
    double *work = NULL;
    em_status status = em_allocate(6 * square + 3 * dim, sizeof *work, &work);

    if (status)
        return status;
    em_scaled s = {.cx = work,
                   .cg = work + square,
                   .root = work + 2 * square,
                   .inverse_root = work + 3 * square,
                   .a = work + 4 * square,
                   .b = work + 5 * square,
                   .scale = work + 6 * square,
                   .value = work + 6 * square + dim};
    em_moments_covariance(EM_MASS_DENSE, dim, n, accumulator + 1, s.cx);
    em_moments_covariance(EM_MASS_DENSE, dim, n,
                          accumulator + 1 + em_moments_size(EM_MASS_DENSE, dim), s.cg);
    scale(dim, n, &s);
    status = em_all_finite(2 * square, s.cx) ? solve(dim, &s, inverse) : EM_NONFINITE;
    em_release(&work);
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

const em_estimator_ops em_fisher = {
    .name = "fisher",
    .doc = "least Fisher divergence from the target, from draws and gradients",
    .source = "Seyboldt, Carlson, Carpenter 2024 (nutpie); dense: W Cg W = Cx",
    .windowed = true,
    .size = size,
    .observe = observe,
    .recentre = recentre,
    .estimate = estimate,
};
