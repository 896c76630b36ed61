#include "math/simd/panel.h"

#include "math/simd/simd.h"

void em_panel_product(int64_t n_chain, int64_t n, int64_t m, const double *A, int64_t lda,
                      const double *B, int64_t ldb, double *C, int64_t ldc)
{
    em_simd_best()->panel_product(n_chain, n, m, A, lda, B, ldb, C, ldc);
}

static const double *tile(const em_tiled *x, int64_t t)
{
    return x->tile + t * x->n_column * EM_TILE_ROWS;
}

void em_tile_predict(const em_tiled *x, int64_t t, int64_t n_chain, int64_t stride,
                     const double *theta, double *eta)
{
    em_simd_best()->tile_predict(n_chain, x->n_column, tile(x, t), stride, theta, eta);
}

void em_tile_accumulate(const em_tiled *x, int64_t t, int64_t n_chain, const double *residual,
                        double *partial)
{
    em_simd_best()->tile_accumulate(n_chain, x->n_column, tile(x, t), residual, partial);
}

void em_tile_finish(int64_t n_chain, int64_t n_column, const double *partial, int64_t stride,
                    double *gradient)
{
    em_simd_best()->tile_finish(n_chain, n_column, partial, stride, gradient);
}

void em_rows_predict(int64_t n, const int64_t *index, const double *x, int64_t stride,
                     const double *theta, double *eta)
{
    em_simd_best()->rows_predict(n, index, x, stride, theta, eta);
}

void em_rows_accumulate(int64_t n, const int64_t *index, const double *x, int64_t stride,
                        const double *residual, double *sum)
{
    em_simd_best()->rows_accumulate(n, index, x, stride, residual, sum);
}

void em_rows_gram(int64_t n, const int64_t *index, const double *x, int64_t stride, const double *w,
                  double *sum)
{
    _Alignas(64) double eta[EM_TILE_ROWS];

    if (stride == 8) {
        em_simd_best()->rows_gram(n, index, x, w, sum);
        return;
    }
    for (int64_t i = 0; i < n; i += EM_TILE_ROWS) {
        const int64_t count = n - i < EM_TILE_ROWS ? n - i : EM_TILE_ROWS;
        em_rows_predict(count, index + i, x, stride, w, eta);
        em_rows_accumulate(count, index + i, x, stride, eta, sum);
    }
}
