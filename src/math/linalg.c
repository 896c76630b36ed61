#include "math/linalg.h"

#include "base/memory.h"
#include "math/finite.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* LAPACK works on columns, so a row-major matrix is its transpose there: a row-major lower triangle
 * is LAPACK's upper one, and eigenvectors in columns are eigenvectors in rows. Asking for
 * LAPACK_COL_MAJOR throughout spares LAPACKE's transposed copies. A matrix whose order does not fit
 * into an int would take 2^65 bytes: the conversions to int lose nothing. */

void em_mirror_lower(int64_t n, double *a, int64_t ld)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            a[j * ld + i] = a[i * ld + j];
}

static bool all_finite(int64_t n, const double *a, int64_t ld)
{
    for (int64_t i = 0; i < n; i++)
        if (!em_all_finite(n, a + i * ld))
            return false;
    return true;
}

/* Computes the Cholesky factor in the lower triangle. Returns false if there is none. */
static bool factor(int64_t n, double *a, int64_t ld)
{
    return all_finite(n, a, ld) &&
           LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', (int)n, a, (int)ld) == 0;
}

em_status em_cholesky(int64_t n, double *a, int64_t ld)
{
    if (!factor(n, a, ld))
        return EM_NONFINITE;
    for (int64_t i = 0; i < n; i++)
        memset(a + i * ld + i + 1, 0, (size_t)(n - i - 1) * sizeof *a);
    return EM_OK;
}

em_status em_invert_lower(int64_t n, double *l, int64_t ld)
{
    int info = LAPACKE_dtrtri_work(LAPACK_COL_MAJOR, 'U', 'N', (int)n, l, (int)ld);

    if (info)
        return em_fail(EM_ENUMERIC, "a triangular matrix of order %lld has no inverse (dtrtri: %d)",
                       (long long)n, info);
    return EM_OK;
}

em_status em_invert_spd(int64_t n, double *a, int64_t ld)
{
    if (!factor(n, a, ld) || LAPACKE_dpotri_work(LAPACK_COL_MAJOR, 'U', (int)n, a, (int)ld))
        return EM_NONFINITE;
    em_mirror_lower(n, a, ld);
    return EM_OK;
}

/* Calls dsyevd with its work spaces. A first call with length -1 returns their lengths. */
static int eigen(int n, double *a, int ld, double *value, double *work, int n_work, int *iwork,
                 int n_iwork)
{
    return LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, 'V', 'U', n, a, ld, value, work, n_work, iwork,
                               n_iwork);
}

em_status em_eigen(int64_t n, double *a, int64_t ld, double *value)
{
    const int order = (int)n, row = (int)ld;
    double n_work, *work = NULL;
    int n_iwork, *iwork = NULL, info;

    if (!all_finite(n, a, ld))
        return em_fail(EM_ENUMERIC, "no eigenvalues: the matrix of order %d is not finite", order);
    eigen(order, a, row, value, &n_work, -1, &n_iwork, -1);
    em_status status = em_allocate_doubles((int64_t)n_work, &work);
    status = status ? status : em_allocate(n_iwork, sizeof *iwork, &iwork);
    if (!status) {
        info = eigen(order, a, row, value, work, (int)n_work, iwork, n_iwork);
        if (info)
            status = em_fail(EM_ENUMERIC, "no eigenvalues of a matrix of order %d (dsyevd: %d)",
                             order, info);
    }
    em_release_all(&work, &iwork);
    return status;
}

em_status em_spectral(int64_t n, const double *v, int64_t ld, const double *f, double *out)
{
    EM_SCOPED double *scaled = NULL;
    em_status status = em_allocate_doubles(n * ld, &scaled);

    if (status)
        return status;
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < n; i++)
            scaled[k * ld + i] = f[k] * v[k * ld + i];
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)n, (int)n, (int)n, 1.0, v, (int)ld,
                scaled, (int)ld, 0.0, out, (int)ld);
    em_mirror_lower(n, out, ld); /* symmetric to the last bit */
    return EM_OK;
}

void em_multiply(int64_t n, const double *a, const double *b, int64_t ld, double *c)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)n, (int)n, 1.0, a, (int)ld,
                b, (int)ld, 0.0, c, (int)ld);
}

void em_gram(int64_t n, int64_t m, const double *a, double *out)
{
    cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, (int)n, (int)m, 1.0, a, (int)m, 0.0, out,
                (int)n);
    em_mirror_lower(n, out, n);
}

void em_transpose(int64_t n, const double *a, double *out)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            out[j * n + i] = a[i * n + j];
}

void em_multiply_into(int64_t n, int64_t k, int64_t m, const double *a, const double *b, double *c)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)m, (int)k, 1.0, a, (int)k,
                b, (int)m, 0.0, c, (int)m);
}

void em_multiply_by_rows(int64_t n, int64_t k, int64_t m, const double *a, const double *b,
                         double *c)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)m, (int)k, 1.0, a, (int)k, b,
                (int)k, 0.0, c, (int)m);
}

void em_multiply_rows(int64_t n, int64_t k, int64_t m, const float *a, const float *b, float *c,
                      int64_t ld)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)m, (int)k, 1.0F, a, (int)k, b,
                (int)k, 0.0F, c, (int)ld);
}

void em_orthonormalise(int64_t n, int64_t dim, double *a, int64_t ld)
{
    for (int64_t k = 0; k < n; k++) {
        double *x = a + k * ld;
        for (int64_t j = 0; j < 2 * k; j++) {
            const double *y = a + j % k * ld;
            const double sum = em_dot(dim, x, y);
            for (int64_t i = 0; i < dim; i++)
                x[i] -= sum * y[i];
        }
        const double norm = em_dot(dim, x, x);
        for (int64_t i = 0; i < dim; i++)
            x[i] /= sqrt(norm);
    }
}

const char *em_linalg_kernels(void)
{
    return openblas_get_corename();
}

#if defined(__x86_64__)
/* OpenBLAS until 0.3.24, and so Debian 12's, takes an Intel processor that it does not know for a
 * Prescott of 2004 (its issue 4267), and multiplies at a fifth of the speed. If the user has chosen
 * no kernels and it fell back to those, the kernels for the instruction set of the processor are
 * chosen here, when this library is loaded, before the first product. */
__attribute__((weak)) void gotoblas_dynamic_quit(void);
__attribute__((weak)) void gotoblas_dynamic_init(void);

__attribute__((constructor)) static void know_processor(void)
{
    static const char variable[] = "OPENBLAS_CORETYPE";

    if (!gotoblas_dynamic_quit || !gotoblas_dynamic_init || getenv(variable) ||
        strcmp(em_linalg_kernels(), "Prescott") != 0)
        return;
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (!avx2 || setenv(variable, avx512 ? "SkylakeX" : "Haswell", 1) != 0)
        return;
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    unsetenv(variable);
}
#endif

int em_linalg_use_threads(int n)
{
    const int before = openblas_get_num_threads();

    if (n != before)
        openblas_set_num_threads(n);
    return before;
}

/* The bytes of the buffer that OpenBLAS 0.3 allocates, with what the system adds. They are
 * allocated here once but not written to, to check that there is memory for them. */
enum { BUFFER_BYTES = 130 << 20 };

em_status em_linalg_reserve(void)
{
    void *room =
        mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double one = 1;

    if (room == MAP_FAILED)
        return em_fail(EM_EMEMORY, "out of memory: BLAS needs %d MB of address space for itself",
                       BUFFER_BYTES >> 20);
    munmap(room, BUFFER_BYTES);
    factor(1, &one, 1); /* which takes it, for good */
    return EM_OK;
}
