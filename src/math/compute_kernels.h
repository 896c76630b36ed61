/* What the bits of a result depend on besides its input: the libraries that compute, and the
 * kernels that they choose for this processor. */
#pragma once

typedef struct em_compute_kernels {
    char text[160]; /* "OpenBLAS 0.3.21 Haswell, avx2, glibc 2.36" */
} em_compute_kernels;

/* BLAS, its version and the processor it chose its kernels for; the instruction set of our vector
 * kernels; the C library, which has exp and log. Two processes with the same text round alike.
 * Local. */
em_compute_kernels em_compute_kernels_here(void);
