#include "support/jacobian.h"

/* By elimination with pivots; a [n][JACOBIAN_MOST] is overwritten. */
static double determinant(int64_t n, double (*a)[JACOBIAN_MOST])
{
    double det = 1, row[JACOBIAN_MOST];

    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k; i < n; i++)
            pivot = fabs(a[i][k]) > fabs(a[pivot][k]) ? i : pivot;
        if (pivot != k) {
            memcpy(row, a[k], sizeof row);
            memcpy(a[k], a[pivot], sizeof row);
            memcpy(a[pivot], row, sizeof row);
            det = -det;
        }
        det *= a[k][k];
        for (int64_t i = k + 1; i < n; i++)
            for (int64_t j = n - 1; j >= k; j--)
                a[i][j] -= a[i][k] / a[k][k] * a[k][j];
    }
    return det;
}

double jacobian(phase_map *map, void *self, int64_t n, const double *z)
{
    const double delta = 1e-4;
    double moved[JACOBIAN_MOST], plus[JACOBIAN_MOST], minus[JACOBIAN_MOST];
    double a[JACOBIAN_MOST][JACOBIAN_MOST];

    for (int64_t j = 0; j < n; j++) {
        memcpy(moved, z, (size_t)n * sizeof *z);
        moved[j] = z[j] + delta;
        map(self, moved, plus);
        moved[j] = z[j] - delta;
        map(self, moved, minus);
        for (int64_t i = 0; i < n; i++)
            a[i][j] = (plus[i] - minus[i]) / (2 * delta);
    }
    return determinant(n, a);
}
