/* Optimal assignment against all permutations. */
#include "math/assignment.h"
#include "math/rng.h"

#include <check.h>
#include <math.h>

#include "support/tap.h"

enum { MOST = 7 };

/* The least cost of rows i .. n - 1 with the columns that are not taken. */
static double least(int64_t n, const double *cost, int64_t i, unsigned taken)
{
    double best = i == n ? 0 : INFINITY;

    for (int64_t j = 0; i < n && j < n; j++)
        if (!(taken >> j & 1))
            best = fmin(best, cost[i * n + j] + least(n, cost, i + 1, taken | 1U << j));
    return best;
}

START_TEST(assignments_are_the_best)
{
    double cost[MOST * MOST];
    int64_t column[MOST];

    for (uint64_t t = 0; t < 200; t++) {
        const int64_t n = 1 + (int64_t)(t % MOST);
        const em_stream stream = {.seed = 1, .iteration = t, .purpose = EM_RNG_TEST};
        unsigned taken = 0;
        double sum = 0;
        for (int64_t i = 0; i < n * n; i++) /* ties, and costs below 0, every other time */
            cost[i] = t % 2 ? (double)em_uniform_below(&stream, (uint64_t)i, 4) - 1
                            : em_uniform(&stream, (uint64_t)i);
        ck_assert_int_eq(em_assign(n, cost, column), EM_OK);
        for (int64_t i = 0; i < n; i++) {
            ck_assert(column[i] >= 0 && column[i] < n && !(taken >> column[i] & 1));
            taken |= 1U << column[i];
            sum += cost[i * n + column[i]];
        }
        ck_assert_double_le(fabs(sum - least(n, cost, 0, 0)), 1e-12);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("assignment");

    tcase_add_test(tests, assignments_are_the_best);
    return run_case(tests, CK_FORK);
}
