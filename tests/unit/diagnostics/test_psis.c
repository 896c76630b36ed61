/* Pareto-smoothed importance sampling: the fit of the tail, and leaving out what is known exactly.
 */
#include "base/memory.h"
#include "diagnostics/psis.h"
#include "math/special.h"
#include "support/tap.h"

#include <math.h>

/* The quantiles of a generalised Pareto have its shape, but for the prior's ten draws of 1/2. */
START_TEST(generalised_pareto_is_fitted)
{
    enum { N = 2000 };
    static const double shape[] = {-0.3, 0.2, 0.7, 1.4};
    static double draws[N];
    double found, scale;

    for (size_t s = 0; s < sizeof shape / sizeof *shape; s++) {
        for (int i = 0; i < N; i++)
            draws[i] = 2.5 * expm1(-shape[s] * log1p(-(i + 0.5) / N)) / shape[s];
        em_psis_fit(N, draws, &found, &scale);
        ck_assert_double_eq_tol(found, (N * shape[s] + 5) / (N + 10), 0.02);
        ck_assert_double_eq_tol(scale, 2.5, 0.1);
    }
}
END_TEST

/*
 * Normal numbers of variance 1 and unknown mean, flat prior: without y the mean of the other n - 1
 * has variance 1 / (n - 1), and y that and 1. With it the density is another: a sampler of
 * importance that left nothing out would be found out.
 */
START_TEST(leaving_out_is_exact_for_normal_numbers)
{
    enum { N = 10, N_DRAW = 4000 };
    static const double y[N] = {-1.2, -0.7, -0.4, -0.1, 0, 0.2, 0.3, 0.6, 0.9, 1.4};
    double log_likelihood[N_DRAW], total = 0;
    em_psis *psis;

    ck_assert_int_eq(em_psis_create(N_DRAW, 1, &psis), EM_OK);
    for (int i = 0; i < N; i++)
        total += y[i];
    for (int i = 0; i < N; i++) {
        const double other = (total - y[i]) / (N - 1), variance = 1 + 1.0 / (N - 1);
        for (int s = 0; s < N_DRAW; s++) {
            const double mean =
                total / N + em_normal_quantile((s + 0.5) / N_DRAW) / sqrt((double)N);
            log_likelihood[s] = -log(2 * M_PI) / 2 - (y[i] - mean) * (y[i] - mean) / 2;
        }
        const em_psis_point point = em_psis_leave_out(psis, log_likelihood);
        const double exact =
            -log(2 * M_PI * variance) / 2 - (y[i] - other) * (y[i] - other) / (2 * variance);
        ck_assert_double_eq_tol(point.elpd, exact, 0.005);
        ck_assert_double_le(point.k, em_psis_good_k(N_DRAW));
        if (fabs(y[i]) > 0.5)
            ck_assert_double_gt(point.lpd, exact + 0.02);
    }
    em_release_owner(&psis);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("psis");

    tcase_add_test(tests, generalised_pareto_is_fitted);
    tcase_add_test(tests, leaving_out_is_exact_for_normal_numbers);
    return run_case(tests, CK_FORK);
}
