#include "adaptation/mass_window/eigenvalue_clipping.h"

#include "base/memory.h"
#include "math/linalg.h"

#include <math.h>
#include <string.h>

static const double most_per_step = 4, most_in_all = 1e3;

static double clamp(double x, double ratio)
{
    return fmin(fmax(x, 1 / ratio), ratio);
}

static em_status clip_diag(int64_t dim, const double *current, double *inverse)
{
    for (int64_t i = 0; i < dim; i++) {
        if (!(inverse[i] > 0) || !isfinite(inverse[i]))
            return EM_NONFINITE;
        inverse[i] = current[i] * clamp(inverse[i] / current[i], most_per_step);
        inverse[i] = clamp(inverse[i], most_in_all);
    }
    return EM_OK;
}

/* a <- the symmetric a with its eigenvalues clamped to [1/ratio, ratio]; scratch: n^2 + 2n. */
static em_status clamp_eigenvalues(int64_t n, double ratio, double *a, double *scratch)
{
    double *vectors = scratch, *value = scratch + n * n, *clamped = value + n;

    memcpy(vectors, a, (size_t)(n * n) * sizeof *a);
    const em_status status = em_eigen(n, vectors, n, value);
    if (status)
        return status;
    for (int64_t i = 0; i < n; i++) {
        if (!(value[i] > 0) || !isfinite(value[i]))
            return EM_NONFINITE;
        clamped[i] = clamp(value[i], ratio);
    }
    return em_spectral(n, vectors, n, clamped, a);
}

/* Clamps the eigenvalues of the change L^-1 W L^-T, where W_0 = L L^T, and multiplies the result by
 * L and L^T. */
static em_status clip_dense(int64_t n, const double *current, double *inverse, double *work)
{
    const int64_t square = n * n;
    double *lower = work, *lower_inverse = work + square, *transposed = work + 2 * square;
    double *change = work + 3 * square, *scratch = work + 4 * square;

    memcpy(lower, current, (size_t)square * sizeof *lower);
    em_status status = em_cholesky(n, lower, n);
    memcpy(lower_inverse, lower, (size_t)square * sizeof *lower);
    status = status ? status : em_invert_lower(n, lower_inverse, n);
    if (status)
        return status;
    em_transpose(n, lower_inverse, transposed);
    em_multiply(n, lower_inverse, inverse, n, scratch);
    em_multiply(n, scratch, transposed, n, change);
    status = clamp_eigenvalues(n, most_per_step, change, scratch);
    if (status)
        return status;
    em_transpose(n, lower, transposed);
    em_multiply(n, lower, change, n, scratch);
    em_multiply(n, scratch, transposed, n, inverse);
    status = clamp_eigenvalues(n, most_in_all, inverse, scratch);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            inverse[i * n + j] = inverse[j * n + i];
    return status;
}

static em_status clip_part(const em_part *part, const double *current, double *inverse)
{
    const int64_t n = part->count;
    EM_SCOPED double *work = NULL;

    if (part->structure == EM_MASS_DIAG)
        return clip_diag(n, current, inverse);
    em_status status = em_allocate(5 * n * n + 2 * n, sizeof *work, &work);
    return status ? status : clip_dense(n, current, inverse, work);
}

em_status em_clip_eigenvalues(const em_mass_form *form, const double *current, double *number)
{
    em_status status = EM_OK;

    for (int64_t i = 0, at = 0; !status && i < em_form_n_part(form); i++) {
        const em_part part = em_form_part(form, i);
        status = clip_part(&part, current + at, number + at);
        at += em_mass_size(part.structure, part.count);
    }
    return status;
}
