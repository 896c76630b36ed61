#include "adaptation/prior_proofs/weighted_regression.h"

#include "base/clones.h"

#include <math.h>

/* sum_r w[r] x[r] y[r]. 32 partial sums are added at the end. With only eight, each addition would
 * wait for the previous one. */
EM_CLONES static double product(int64_t n, const double *w, const double *x, const double *y)
{
    enum { SUMS = 4 * EM_LANES };
    double sums[SUMS] = {0}, sum = 0;
    int64_t r = 0;

    for (; r + SUMS <= n; r += SUMS)
        for (int k = 0; k < SUMS; k++)
            sums[k] += w[r + k] * x[r + k] * y[r + k];
    for (; r + EM_LANES <= n; r += EM_LANES)
        for (int k = 0; k < EM_LANES; k++)
            sums[k] += w[r + k] * x[r + k] * y[r + k];
    for (int k = 0; k < EM_LANES; k++)
        sum += (sums[k] + sums[EM_LANES + k]) + (sums[2 * EM_LANES + k] + sums[3 * EM_LANES + k]);
    for (; r < n; r++)
        sum += w[r] * x[r] * y[r];
    return sum;
}

/* x -= c y */
EM_CLONES static void subtract(int64_t n, double c, const double *y, double *restrict x)
{
    for (int64_t r = 0; r < n; r++)
        x[r] -= c * y[r];
}

double em_weighted_product(const em_weighted_regression *of, const double *x, const double *y)
{
    return product(of->n, of->weight, x, y);
}

void em_project_out(const em_weighted_regression *of, int n, double *x, double *coefficient)
{
    for (int q = 0; q < n; q++) {
        const double *basis = of->basis + q * of->n;
        const double c = em_weighted_product(of, basis, x);
        subtract(of->n, c, basis, x);
        if (coefficient)
            coefficient[q] = c;
    }
}

int em_add_regressor(em_weighted_regression *of, int n, double *x,
                     double (*triangle)[EM_MOST_REGRESSORS])
{
    double along[EM_MOST_REGRESSORS];
    const double before = em_weighted_product(of, x, x);

    em_project_out(of, n, x, along);
    const double length = sqrt(em_weighted_product(of, x, x));
    if (!(length * length > 1e-10 * before))
        return n;
    for (int64_t r = 0; r < of->n; r++)
        of->basis[n * of->n + r] = x[r] / length;
    for (int q = 0; triangle && q < n; q++)
        triangle[q][n] = along[q];
    if (triangle)
        triangle[n][n] = length;
    return n + 1;
}

void em_solve_regression(int n, double (*triangle)[EM_MOST_REGRESSORS], double *along)
{
    for (int q = n - 1; q >= 0; q--) {
        for (int p = q + 1; p < n; p++)
            along[q] -= triangle[q][p] * along[p];
        along[q] /= triangle[q][q];
    }
}
