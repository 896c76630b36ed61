#include "math/simd/panel.h"

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
