/*
 * Matrix products for a panel of chains in which the bits of row c of the result depend on row c of
 * the input alone, neither on n_chain nor on c. (BLAS does not guarantee that: it chooses kernels
 * by the number of rows.) The terms of every element are added in one fixed order.
 */
#pragma once

#include "math/simd/simd.h"

#include <stdint.h>

/* C[c][i] = sum_j A[c][j] B[j][i], j ascending. A [n_chain][lda], B [n][ldb], C [n_chain][ldc]; j <
 * n, i < m. ldb and ldc are multiples of 8 and at least m; rows 64-byte aligned. Columns from m up
 * to the next multiple of 8 are computed too, so the padding of B must be finite. No aliasing.
 * Local. */
static inline void em_panel_product(int64_t n_chain, int64_t n, int64_t m, const double *A,
                                    int64_t lda, const double *B, int64_t ldb, double *C,
                                    int64_t ldc)
{
    em_simd_best()->panel_product(n_chain, n, m, A, lda, B, ldb, C, ldc);
}

/* A design matrix in tiles of EM_TILE_ROWS rows. A tile is stored column by column, so that both
 * products of a generalised linear model read it sequentially. Missing rows of the last tile are
 * zero. */
enum { EM_TILE_ROWS = 64 };

typedef struct em_tiled {
    int64_t n_row, n_column, n_tile;
    double *tile; /* [n_tile][n_column][EM_TILE_ROWS], 64-byte aligned */
} em_tiled;

static inline const double *em_tile_at(const em_tiled *x, int64_t t)
{
    return x->tile + t * x->n_column * EM_TILE_ROWS;
}

/* eta[c][i] = sum_j theta[c][j] x[i][j] for the rows i of tile t; eta is [n_chain][EM_TILE_ROWS].
 * Local. */
static inline void em_tile_predict(const em_tiled *x, int64_t t, int64_t n_chain, int64_t stride,
                                   const double *theta, double *eta)
{
    em_simd_best()->tile_predict(n_chain, x->n_column, em_tile_at(x, t), stride, theta, eta);
}

/* Adds residual[c][i] x[i][j] for all rows i of tile t to partial[c][j][i modulo 8]. residual is
 * [n_chain][EM_TILE_ROWS] (zero for missing rows), partial [n_chain][n_column][8]. Local. */
static inline void em_tile_accumulate(const em_tiled *x, int64_t t, int64_t n_chain,
                                      const double *residual, double *partial)
{
    em_simd_best()->tile_accumulate(n_chain, x->n_column, em_tile_at(x, t), residual, partial);
}

/* gradient[c][j] += the sum of partial[c][j][0..8), in one fixed order; gradient [n_chain][stride],
 * 64-byte aligned, stride a multiple of 8. Local. */
static inline void em_tile_finish(int64_t n_chain, int64_t n_column, const double *partial,
                                  int64_t stride, double *gradient)
{
    em_simd_best()->tile_finish(n_chain, n_column, partial, stride, gradient);
}

/* The products of em_tile_predict and em_tile_accumulate for one chain and n selected rows index[i]
 * of a matrix [][stride] stored row by row: eta[i] = sum_j theta[j] x[index[i]][j], and sum[j] +=
 * sum_i residual[i] x[index[i]][j]. n and stride are multiples of 8; x, theta, eta and sum are
 * 64-byte aligned; the padding of x and theta is zero. Local. */
static inline void em_rows_predict(int64_t n, const int64_t *index, const double *x, int64_t stride,
                                   const double *theta, double *eta)
{
    em_simd_best()->rows_predict(n, index, x, stride, theta, eta);
}

static inline void em_rows_accumulate(int64_t n, const int64_t *index, const double *x,
                                      int64_t stride, const double *residual, double *sum)
{
    em_simd_best()->rows_accumulate(n, index, x, stride, residual, sum);
}

/* Both products with residual = eta: sum += X^T X w over the selected rows. Rows of one cache line
 * are read only once. Arguments as above. Local. */
void em_rows_gram(int64_t n, const int64_t *index, const double *x, int64_t stride, const double *w,
                  double *sum);
