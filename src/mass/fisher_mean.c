/* Solves W C_g W = C_x: W = C_g^-1/2 (C_g^1/2 C_x C_g^1/2)^1/2 C_g^-1/2. */
#include "mass/fisher.h"
#include "math/finite.h"
#include "math/linalg.h"

#include <math.h>

/* Computes f(S) for the symmetric S = vectors^T diag(value) vectors, where f takes the eigenvalues
 * to `power`. */
static em_status power(int64_t dim, const double *vectors, const double *value, double exponent,
                       double *scratch, double *out)
{
    for (int64_t i = 0; i < dim; i++)
        scratch[i] = pow(value[i], exponent);
    return em_spectral(dim, vectors, dim, scratch, out);
}

em_status em_fisher_mean(int64_t n, const double *cx, double *cg, double *work, double *out)
{
    double *root = work, *inverse_root = root + n * n, *a = inverse_root + n * n, *b = a + n * n;
    double *value = b + n * n, *scratch = value + n;
    em_status status = em_all_finite(n * n, cg) ? em_eigen(n, cg, n, value) : EM_NONFINITE;

    if (status || !em_all_positive(n, value))
        return status ? status : EM_NONFINITE;
    status = power(n, cg, value, 0.5, scratch, root);
    status = status ? status : power(n, cg, value, -0.5, scratch, inverse_root);
    if (status)
        return status;
    em_multiply(n, root, cx, n, a);
    em_multiply(n, a, root, n, b);
    status = em_all_finite(n * n, b) ? em_eigen(n, b, n, value) : EM_NONFINITE;
    if (status || !em_all_positive(n, value))
        return status ? status : EM_NONFINITE;
    status = power(n, b, value, 0.5, scratch, a);
    if (status)
        return status;
    em_multiply(n, inverse_root, a, n, root);
    em_multiply(n, root, inverse_root, n, a);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            out[i * n + j] = 0.5 * (a[i * n + j] + a[j * n + i]);
    return EM_OK;
}
