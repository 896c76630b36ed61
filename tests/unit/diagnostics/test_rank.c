/* Sorting for ranks: every number once, in order, and equal ones in the order in which they came.
 */
#include "diagnostics/rank.h"
#include "support/tap.h"

#include <math.h>
#include <stdbool.h>

static void check_sorted(int n, const double *x, const em_sorted *sorted)
{
    for (int i = 0; i < n; i++)
        ck_assert(sorted[i].value == x[sorted[i].index]);
    for (int i = 1; i < n; i++)
        ck_assert(
            sorted[i - 1].value < sorted[i].value ||
            (sorted[i - 1].value == sorted[i].value && sorted[i - 1].index < sorted[i].index));
}

START_TEST(sorts_any_bits)
{
    enum { N = 10 };
    static const double x[][N] = {
        {3, -0.0, -INFINITY, 1e-310, 0.0, -2, INFINITY, 5e-324, -1e300, 3},
        {1.5, 1.25, 1, 1.75, 1.5, 1, 1.25, 1.5, 1.75, 1}, /* one byte tells them apart */
        {4, 1, 5, 3, 2, 3, 5, 1, 2, 4},                   /* two */
        {7, 7, 7, 7, 7, 7, 7, 7, 7, 7}};                  /* none */
    em_sorted sorted[N], scratch[N];

    for (size_t k = 0; k < sizeof x / sizeof *x; k++) {
        bool seen[N] = {false};

        em_sort(N, x[k], sorted, scratch);
        for (int i = 0; i < N; i++) {
            ck_assert(sorted[i].value == x[k][sorted[i].index] && !seen[sorted[i].index]);
            ck_assert(i == 0 || sorted[i - 1].value <= sorted[i].value);
            seen[sorted[i].index] = true;
        }
    }
}
END_TEST

/* Draws that differ in their upper bits, or in the lower ones only, few and many alike in the
 * upper. */
START_TEST(sorts_draws_that_are_close)
{
    enum { N = 3000 };
    static double x[N];
    static em_sorted sorted[N], scratch[N];
    uint64_t state = 1;

    for (int close = 0; close < 4; close++) {
        for (int i = 0; i < N; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const double u = ldexp((double)(state >> 11), -53);
            x[i] = close == 0   ? u - 0.5
                   : close == 1 ? 1 + 1e-8 * u
                                : floor(100 * u) + (i % 40 ? 0 : 1e-9 * u);
            x[i] = close == 3 ? -x[i] : x[i];
        }
        em_sort(N, x, sorted, scratch);
        check_sorted(N, x, sorted);
    }
}
END_TEST

/* Draws of all sizes, which buckets of equal width do not tell apart, and infinite ones. */
START_TEST(sorts_draws_of_all_sizes)
{
    enum { N = 4000 };
    static double x[N];
    static em_sorted sorted[N], scratch[N];

    for (int infinite = 0; infinite < 2; infinite++) {
        for (int i = 0; i < N; i++) {
            const int k = i * 1009 % N;
            x[i] = (k % 2 ? -1 : 1) * ldexp(1 + (double)(k % 7), -(k / 2));
        }
        x[17] = infinite ? INFINITY : 0.0;
        x[18] = infinite ? -INFINITY : -0.0;
        em_sort(N, x, sorted, scratch);
        check_sorted(N, x, sorted);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("rank");

    tcase_add_test(tests, sorts_any_bits);
    tcase_add_test(tests, sorts_draws_that_are_close);
    tcase_add_test(tests, sorts_draws_of_all_sizes);
    return run_case(tests, CK_FORK);
}
