/* The numerical libraries, and the kernels that they choose for this processor. The bits of a
 * result depend only on these and on the input. */
#pragma once

typedef struct em_compute_kernels {
    char text[160]; /* "OpenBLAS 0.3.21 Haswell, avx2, glibc 2.36" */
} em_compute_kernels;

/* A text that names BLAS, its version and the processor whose kernels it chose; the instruction set
 * of the vector kernels of this folder; and the C library, which provides exp and log. Two
 * processes with the same text compute the same bits. Local. */
em_compute_kernels em_compute_kernels_here(void);
