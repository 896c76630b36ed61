#include "math/compute_kernels.h"

#include "math/linalg.h"
#include "math/simd/simd.h"

#include <cblas.h>
#include <stdio.h>
#include <string.h>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#define C_LIBRARY "glibc ", gnu_get_libc_version()
#else
#define C_LIBRARY "another C library", ""
#endif

em_compute_kernels em_compute_kernels_here(void)
{
    const char *blas = openblas_get_config(); /* "OpenBLAS 0.3.21 DYNAMIC_ARCH ..." */
    const size_t name = strcspn(blas, " ");
    const size_t version = blas[name] ? strcspn(blas + name + 1, " ") : 0;
    em_compute_kernels out;

    snprintf(out.text, sizeof out.text, "%.*s %s, %s, %s%s", (int)(name + 1 + version), blas,
             em_linalg_kernels(), em_simd_best()->name, C_LIBRARY);
    return out;
}
