/*
 * Small dense linear algebra on row-major symmetric matrices, through LAPACKE. All Local. Functions
 * with a status return EM_ENUMERIC, with a message, if the factorisation fails, and EM_EMEMORY. `n`
 * is the order of a matrix and `ld` its row length (>= n). Both triangles of symmetric inputs are
 * read.
 */
#pragma once

#include "emass/status.h"

#include <stdint.h>

/* x . y, summed from the first to the last. */
static inline double em_dot(int64_t n, const double *x, const double *y)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* Lower Cholesky factor in place: A = L L^T, the upper triangle is set to zero. Errors:
 * EM_NONFINITE (recoverable) if A is not positive definite. */
em_status em_cholesky(int64_t n, double *a, int64_t ld);

/* Inverse in place of a lower triangular matrix. */
em_status em_invert_lower(int64_t n, double *l, int64_t ld);

/* Inverse in place of a symmetric positive definite matrix. Errors: EM_NONFINITE if it is not
 * positive definite. */
em_status em_invert_spd(int64_t n, double *a, int64_t ld);

/* Eigenvalues ascending into value[n]; eigenvector k into ROW k of a. */
em_status em_eigen(int64_t n, double *a, int64_t ld, double *value);

/* A function f of a symmetric matrix: out = V^T diag(f) V, where the rows of V are the eigenvectors
 * from em_eigen and f [n] the function of the eigenvalues. `out` also has row length ld, and does
 * not alias v. */
em_status em_spectral(int64_t n, const double *v, int64_t ld, const double *f, double *out);

/* C = A B, all n x n with row length ld; no aliasing. */
void em_multiply(int64_t n, const double *a, const double *b, int64_t ld, double *c);

/* Copies the lower triangle of a [n][ld] to the upper one. */
void em_mirror_lower(int64_t n, double *a, int64_t ld);

/* out = A^T, n x n, without padding; no aliasing. */
void em_transpose(int64_t n, const double *a, double *out);

/* out [n][n] = A A^T for A [n][m]. */
void em_gram(int64_t n, int64_t m, const double *a, double *out);

/* C [n][m] = A [n][k] B [k][m], without padding; no aliasing. */
void em_multiply_into(int64_t n, int64_t k, int64_t m, const double *a, const double *b, double *c);

/* C [n][m] = A B^T for A [n][k] and B [m][k], without padding; no aliasing. */
void em_multiply_by_rows(int64_t n, int64_t k, int64_t m, const double *a, const double *b,
                         double *c);

/* C = A B^T for A [n][k] and B [m][k]. C is [n][ld], and its first m columns are written; no
 * aliasing. */
void em_multiply_rows(int64_t n, int64_t k, int64_t m, const float *a, const float *b, float *c,
                      int64_t ld);

/* Makes the rows of a [n][ld], of which dim columns are used, orthonormal by two passes of
 * Gram-Schmidt. The rows must be linearly independent. */
void em_orthonormalise(int64_t n, int64_t dim, double *a, int64_t ld);

/* The processor for which BLAS selected its kernels: "Haswell". Local. */
const char *em_linalg_kernels(void);

/* Sets how many threads BLAS may use in this process and returns the old number. Use one where bits
 * matter, because threads change them. Local. */
int em_linalg_use_threads(int n);

/* Makes BLAS allocate its work space now. If memory is short when OpenBLAS first needs it, OpenBLAS
 * retries for ever. Local. Errors: EM_EMEMORY. */
em_status em_linalg_reserve(void);
