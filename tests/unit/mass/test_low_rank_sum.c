/* Masses of low rank that are made of others (mass/low_rank_sum.h), against dense linear algebra.
 */
#include "mass/low_rank_sum.h"
#include "math/linalg.h"
#include "support/low_rank_numbers.h"
#include "support/tap.h"

#include <math.h>

enum {
    DIM = 20,
    RANK = 3,
    MOST = 8,
    FIRST = 4,
    COUNT = 11,
    N = 3,
    MOST_NUMBER = DIM + MOST * (1 + DIM)
};

/* Two masses of low rank and a diagonal one, and the inverses of their W. */
typedef struct terms {
    double number[N][MOST_NUMBER], precision[N][DIM * DIM];
    em_low_rank_term term[N];
} terms;

static void create(terms *t)
{
    for (int j = 0; j < N; j++) {
        const int64_t rank = j < 2 ? RANK : 0;
        some_low_rank((uint64_t)j, DIM, rank, rank, t->number[j], t->precision[j]);
        ck_assert(!em_invert_spd(DIM, t->precision[j], DIM));
        t->term[j] = (em_low_rank_term){0.3 + 0.5 * j, DIM, rank, t->number[j]};
    }
}

/* The largest error of the inverse of a sum, with masses of so many directions at most. */
static double error_of(const terms *t, int64_t first, int64_t count, int64_t most)
{
    const em_mass_form form = {.ops = &em_mass_low_rank, .dim = count, .most_rank = most};
    double number[MOST_NUMBER], found[DIM * DIM], largest = 0;
    em_mass *mass;

    ck_assert(!em_low_rank_sum(first, &form, N, t->term, number));
    ck_assert(!em_mass_of(&form, number, &mass)); /* its directions are orthonormal */
    ck_assert(!em_mass_matrix(mass, EM_MAP_SOLVE, EM_MASS_DENSE, found));
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < count; j++) {
            double sum = 0;
            for (int k = 0; k < N; k++)
                sum += t->term[k].weight * t->precision[k][(first + i) * DIM + first + j];
            largest = fmax(largest, fabs(found[i * count + j] - sum));
        }
    em_mass_destroy(&mass);
    return largest;
}

/* A broken twin has too few directions. */
START_TEST(the_inverse_is_the_sum_of_inverses)
{
    terms t;

    create(&t);
    ck_assert_double_lt(error_of(&t, 0, DIM, MOST), 1e-11);
    ck_assert_double_gt(error_of(&t, 0, DIM, 2), 0.1);
}
END_TEST

START_TEST(so_it_is_of_a_block_of_parameters)
{
    terms t;

    create(&t);
    ck_assert_double_lt(error_of(&t, FIRST, COUNT, MOST), 1e-11);
    ck_assert_double_gt(error_of(&t, FIRST, COUNT, 2), 0.1);
}
END_TEST

/* Draws of another law than the one of the directions: their variances along them, less what the
 * prior of five draws takes, and every parameter's. A direction of value 1 stays none. */
START_TEST(the_covariance_has_the_variances_of_the_draws)
{
    enum { DRAWS = 4000 };
    static double row[DRAWS * 2 * DIM];
    const em_mass_form form = {.ops = &em_mass_low_rank, .dim = DIM, .most_rank = MOST};
    const em_samples draws = {DRAWS, row};
    double mass[MOST_NUMBER], w[DIM * DIM], number[MOST_NUMBER], variance[DIM], found[DIM * DIM];
    em_mass *made;

    some_low_rank(1, DIM, RANK, MOST, mass, w);
    for (int i = 0; i < DIM; i++)
        variance[i] = 1 + i;
    for (int k = 0; k < DRAWS; k++) /* 4 times as wide along the first direction, or 9 */
        for (int i = 0; i < DIM; i++)
            row[k * 2 * DIM + i] = mass[i] * (3 + (k % 2 ? 2 : -2) * mass[DIM + MOST + i] +
                                              (k / 2 % 2 ? 3 : -3) * mass[DIM + MOST + DIM + i]);
    em_low_rank_covariance(&form, mass, variance, &draws, number);
    ck_assert_double_eq_tol(number[DIM], 4, 0.05);
    ck_assert_double_eq_tol(number[DIM + 1], 9, 0.05);
    for (int k = RANK; k < MOST; k++)
        ck_assert_double_eq(number[DIM + k], 1);
    ck_assert(!em_mass_of(&form, number, &made));
    ck_assert(!em_mass_matrix(made, EM_MAP_VELOCITY, EM_MASS_DENSE, found));
    for (int i = 0; i < DIM; i++)
        ck_assert_double_eq_tol(found[i * (DIM + 1)], variance[i], 1e-10);
    em_mass_destroy(&made);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("low_rank_sum");

    tcase_add_test(tests, the_inverse_is_the_sum_of_inverses);
    tcase_add_test(tests, so_it_is_of_a_block_of_parameters);
    tcase_add_test(tests, the_covariance_has_the_variances_of_the_draws);
    return run_case(tests, CK_FORK);
}
