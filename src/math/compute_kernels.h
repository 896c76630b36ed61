/* The libraries that compute, and the kernels that they choose for this processor. Besides the
 * input, only these determine the bits of a result. */
#pragma once

typedef struct em_compute_kernels {
    char text[160]; /* "OpenBLAS 0.3.21 Haswell, avx2, glibc 2.36" */
} em_compute_kernels;

/* A text that names BLAS, its version and the processor it chose its kernels for; the instruction
 * set of the vector kernels of this room; and the C library, which has exp and log. Two processes
 * with the same text compute the same bits. Local. */
em_compute_kernels em_compute_kernels_here(void);
