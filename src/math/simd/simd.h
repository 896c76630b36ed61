/*
 * The vector kernels of this folder, compiled once for each instruction set. A kernel is written
 * once, for any vector width, in simd_kernels.inc or a file that it includes. A file simd_<name>.c
 * defines the vector type and includes that source. AVX-512 and AVX2 give the same bits: the
 * operations on an element do not depend on the width, and SLEEF's "finz" functions guarantee the
 * same.
 */
#pragma once

#include "emass/status.h"
#include "math/simd/bytes.h"

#include <stdbool.h>
#include <stdint.h>

/* Kernels for x86 need gcc. Unless the whole program is compiled for the instruction set, clang 14
 * passes vectors to SLEEF in memory, but SLEEF expects them in registers. */
#if defined(__x86_64__) && !defined(__clang__)
#define EM_SIMD_X86
#endif

/* A Philox key, and a counter as two words of 64 bits to which block numbers are added. */
typedef struct em_philox {
    uint64_t key, low, high;
} em_philox;

/* The kernels behind the functions of the same names in rng.h, vector.h, panel.h, binned.h and
 * bytes.h. `integers` returns false, having done nothing of use, if a number might have to be drawn
 * again. */
typedef struct em_simd {
    const char *name;
    void (*normals)(em_philox start, int64_t n, double *out);
    void (*single_normals)(em_philox start, int64_t n, double *out);
    bool (*integers)(em_philox start, int64_t n, uint64_t bound, uint64_t growth, int64_t *out);
    void (*gammas)(em_philox start, int64_t n, const double *shape, double *out);
    void (*item_bits)(em_philox start, int64_t n, const uint64_t *block, uint32_t *out);
    void (*jumps)(int64_t n, const uint32_t *bits, float *gap, float *size);
    void (*logistic)(int64_t n, const double *a, double *softplus, double *sigmoid);
    void (*exp)(int64_t n, const double *x, double *out);
    void (*exp_near_0)(int64_t n, const double *x, double *out);
    void (*log)(int64_t n, const double *x, double *out);
    void (*log1p)(int64_t n, const double *x, double *out);
    void (*log_rising)(int64_t n, const double *y, double phi, double *value, double *slope);
    void (*panel_product)(int64_t n_chain, int64_t n, int64_t m, const double *A, int64_t lda,
                          const double *B, int64_t ldb, double *C, int64_t ldc);
    void (*tile_predict)(int64_t n_chain, int64_t n_column, const double *tile, int64_t stride,
                         const double *theta, double *eta);
    void (*tile_accumulate)(int64_t n_chain, int64_t n_column, const double *tile,
                            const double *residual, double *partial);
    void (*tile_finish)(int64_t n_chain, int64_t n_column, const double *partial, int64_t stride,
                        double *gradient);
    void (*rows_predict)(int64_t n, const int64_t *index, const double *x, int64_t stride,
                         const double *theta, double *eta);
    void (*rows_accumulate)(int64_t n, const int64_t *index, const double *x, int64_t stride,
                            const double *residual, double *sum);
    void (*rows_gram)(int64_t n, const int64_t *index, const double *x, const double *w,
                      double *sum);
    void (*binned_clear)(int64_t n, double *bins);
    void (*binned_add)(int64_t n, double *x, double *bins);
    void (*binned_merge)(int64_t n, const double *from, double *bins);
    void (*binned_values)(int64_t n, const double *bins, double *out);
    void (*binned_single)(int64_t n, double *x);
    void (*bytes_mark)(em_bytes *x);
    void (*bytes_multiply)(const em_bytes *x, int64_t n_to, const double *weight, int64_t pitch,
                           double *z);
    void (*bytes_gather)(const em_bytes *x, int64_t n_to, const double *d, int64_t pitch,
                         bool begun, double *sum);
    void (*bytes_multiply_single)(const em_bytes *x, int64_t n_to, const float *weight,
                                  int64_t pitch, float *z);
    void (*bytes_gather_single)(const em_bytes *x, int64_t n_to, const float *d, int64_t pitch,
                                bool begun, float *sum);
} em_simd;

/* In descending order of width; ends with NULL. The last one runs on every processor. */
extern const em_simd *const em_simds[];

/* Whether this processor has the instruction set. Local. */
bool em_simd_runs(const em_simd *simd);

/* The instruction set of that name. Local. Errors: EM_EUSAGE if this processor does not have it;
 * *out is then the widest that it has. */
em_status em_simd_find(const char *name, const em_simd **out);

/* The widest instruction set of this processor, or the one that the environment variable EMASS_SIMD
 * named at the first call. Loops that give the same bits at any width (EM_CLONES) always use the
 * widest. Local. */
const em_simd *em_simd_best(void);

/* Checks EMASS_SIMD. Local. Errors: EM_EUSAGE if it names no instruction set of this processor. */
em_status em_simd_check(void);
