/* Exact sums: the same bits in any order and however terms are distributed, near to the true sum,
 * beyond the number of terms that bins take, and marked where a term is not finite. */
#include "math/exact.h"
#include "math/rng.h"
#include "support/tap.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST = 5000 };

/* Of all sizes from 10^-range to 10^range, both signs; every third nearly cancels the one before.
 */
static double term(int64_t t, double range)
{
    const em_stream stream = {12, 0, (uint64_t)(t - (t % 3 == 2)), EM_RNG_TEST};
    const double sign = em_uniform(&stream, 0) < 0.5 ? -1 : 1;
    const double x = sign * pow(10, range * (2 * em_uniform(&stream, 1) - 1));

    return t % 3 == 2 ? -x * (1 + 0x1p-45 * em_uniform(&stream, 2)) : x;
}

/* Of every `stride`-th term, distributed over `n_part` parts, which are then added. */
static em_exact_sum sum_of(int64_t n, int64_t stride, int64_t n_part, double range)
{
    em_exact_sum sum = {0};

    for (int64_t part = 0; part < n_part; part++) {
        em_exact_sum some = {0};
        for (int64_t t = part; t < n; t += n_part) {
            const em_exact_sum one = em_exact_of(term(t * stride % n, range));
            em_exact_add(&one, &some);
        }
        em_exact_add(&some, &sum);
    }
    return sum;
}

START_TEST(sums_know_no_order)
{
    static const double ranges[] = {0, 3, 40, 280};

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const em_exact_sum sum = sum_of(MOST, 1, 1, ranges[i]);
        const double value = em_exact_value(&sum);
        long double truth = 0, largest = 0;
        for (int64_t t = 0; t < MOST; t++) { /* 64 bits, in pairs that cancel */
            truth += term(t, ranges[i]);
            largest = fmaxl(largest, fabsl((long double)term(t, ranges[i])));
        }
        ck_assert(fabsl(value - truth) <= ldexpl(largest, -50) + fabsl(truth) * DBL_EPSILON);
        for (int64_t n_part = 1; n_part < 9; n_part += 2) {
            const em_exact_sum other = sum_of(MOST, 7, n_part, ranges[i]);
            ck_assert_mem_eq(&other, &sum, sizeof sum);
        }
    }
}
END_TEST

START_TEST(one_term_is_itself)
{
    static const double terms[] = {
        1,    -1,      0.1,     DBL_MAX, -DBL_MAX,  DBL_MIN, 0x1p-1074,
        1e40, -1e-300, M_PI,    0x1p31,  0x1p32,    0x1p-32, 0x1.fffffffffffffp63,
        0,    1e308,   -0x1p53, 0x1p-1,  -0x1p-1022};

    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
        const em_exact_sum sum = em_exact_of(terms[i]);
        ck_assert(em_exact_value(&sum) == terms[i]);
    }
}
END_TEST

/* 2^53 + 1 - 2^53 is 1, where doubles give 0; and 2^31 ones are 2^31. */
START_TEST(nothing_is_lost)
{
    em_exact_sum sum = em_exact_of(0x1p53), one = em_exact_of(1), less = em_exact_of(-0x1p53);

    em_exact_add(&one, &sum);
    em_exact_add(&less, &sum);
    ck_assert(em_exact_value(&sum) == 1);
    sum = em_exact_of(0x1.fffffffffffffp31);
    for (int i = 0; i < 31; i++) {
        const em_exact_sum again = sum;
        em_exact_add(&again, &sum);
    }
    ck_assert(em_exact_value(&sum) == 0x1.fffffffffffffp62);
}
END_TEST

/* 100,000 terms beside one of 1, of which each has 8 bits below 2^-64, all of one sign: what is
 * lost of them adds up. In pieces of 25 and of 1000, as ranks have them. */
START_TEST(so_are_many_small_ones)
{
    enum { N = 100000 };
    const double small = 0x1p-20 + 0x1p-64 - 0x1p-72;
    const long double truth = 1 + (long double)N * small;

    for (int64_t each = 25; each <= 1000; each *= 40) {
        em_exact_sum sum = em_exact_of(1);
        for (int64_t part = 0; part < N / each; part++) {
            em_exact_sum some = {0};
            for (int64_t i = 0; i < each; i++) {
                const em_exact_sum one = em_exact_of(small);
                em_exact_add(&one, &some);
            }
            em_exact_add(&some, &sum);
        }
        ck_assert(fabsl(em_exact_value(&sum) - truth) <= 0x1p-52L);
    }
}
END_TEST

START_TEST(what_is_not_finite_is_marked)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};

    for (int i = 0; i < 3; i++) {
        const em_exact_sum one = em_exact_of(1), marked = em_exact_of(bad[i]);
        em_exact_sum before = marked, after = one;
        em_exact_add(&one, &before);
        em_exact_add(&marked, &after);
        em_exact_add(&before, &after);
        ck_assert(isnan(em_exact_value(&before)) && isnan(em_exact_value(&after)));
    }
    ck_assert(em_exact_value(&(em_exact_sum){0}) == 0);
}
END_TEST

int main(void)
{
    TCase *all = tcase_create("exact sums");

    tcase_add_test(all, sums_know_no_order);
    tcase_add_test(all, one_term_is_itself);
    tcase_add_test(all, nothing_is_lost);
    tcase_add_test(all, so_are_many_small_ones);
    tcase_add_test(all, what_is_not_finite_is_marked);
    return run_case(all, CK_FORK);
}
