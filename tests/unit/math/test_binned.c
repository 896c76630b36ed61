/* Binned sums: the same bits in any order and however terms are distributed, next to the exact sum,
 * for every instruction set of this processor. */
#include "math/rng.h"
#include "math/simd/simd.h"
#include "support/tap.h"

#include <math.h>
#include <string.h>

enum { N = 16, MOST = 1024 };

enum { N_RANGE = 4, N_SIMD = 3 };
static const double ranges[N_RANGE] = {0, 3, 40, 280};
static const em_simd *simd;

/* Instruction sets times ranges: those that this processor has not are tested as its best one. */
static double choose(int i)
{
    const em_simd *const *each = em_simds;

    for (int k = i / N_RANGE; k > 0 && *each; k--)
        each++;
    simd = *each && em_simd_runs(*each) ? *each : em_simd_best();
    return ranges[i % N_RANGE];
}

/* Term t of sum i: of all sizes from 10^-range to 10^range, both signs; every third nearly cancels
 * the one before. */
static double term(int64_t t, int64_t i, double range)
{
    const em_stream stream = {11, (uint64_t)i, (uint64_t)(t - (t % 3 == 2)), EM_RNG_TEST};
    const double sign = em_uniform(&stream, 0) < 0.5 ? -1 : 1;
    const double x = sign * pow(10, range * (2 * em_uniform(&stream, 1) - 1));

    return t % 3 == 2 ? -x * (1 + 0x1p-45 * em_uniform(&stream, 2)) : x;
}

static void add_terms(const int *order, int64_t first, int64_t last, double range, double *bins)
{
    _Alignas(64) double x[N];

    for (int64_t t = first; t < last; t++) {
        for (int64_t i = 0; i < N; i++)
            x[i] = term(order[t], i, range);
        simd->binned_add(N, x, bins);
        for (int64_t i = 0; i < N; i++)
            ck_assert_double_eq(x[i], 0);
    }
}

static void shuffle(int n, uint64_t seed, int *order)
{
    const em_stream stream = {seed, 0, 0, EM_RNG_TEST};

    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        const int j = (int)em_uniform_below(&stream, (uint64_t)i, (uint64_t)i + 1);
        const int kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* The sums of `count` terms in an order of their own, distributed over `n_part` parts. */
static void sums(int count, int n_part, uint64_t seed, double range, double *out)
{
    static int order[MOST];
    _Alignas(64) double total[3 * N], part[3 * N];

    shuffle(count, seed, order);
    simd->binned_clear(N, total);
    for (int p = 0; p < n_part; p++) {
        simd->binned_clear(N, part);
        add_terms(order, (int64_t)count * p / n_part, (int64_t)count * (p + 1) / n_part, range,
                  part);
        simd->binned_merge(N, part, total);
    }
    simd->binned_values(N, total, out);
}

START_TEST(the_order_does_not_matter)
{
    const double range = choose(_i);
    _Alignas(64) double first[N], other[N];

    for (int count = 1; count <= MOST; count = 3 * count + 1) {
        sums(count, 1, 0, range, first);
        for (uint64_t seed = 1; seed < 20; seed++) {
            sums(count, 1 + (int)seed % 7, seed, range, other);
            ck_assert_mem_eq(first, other, sizeof first);
        }
    }
}
END_TEST

/* Added one after the other, as is: the twin that the test above must find out. */
START_TEST(plain_sums_differ)
{
    static int order[MOST];
    const double range = choose(_i);
    double plain[2] = {0, 0};

    for (int way = 0; way < 2; way++) {
        shuffle(MOST, (uint64_t)way, order);
        for (int t = 0; t < MOST; t++)
            plain[way] += term(order[t], 3, range);
    }
    ck_assert(plain[0] != plain[1]);
}
END_TEST

/* Exact but for 2^-80 of the largest term for each, and the rounding of the result. Terms of
 * neighbouring sizes fit the 64 bits of a long double's mantissa. */
START_TEST(they_are_next_to_the_exact_sum)
{
    _Alignas(64) double found[N];

    choose(_i * N_RANGE);
    for (int count = 1; count <= MOST; count = 3 * count + 1) {
        sums(count, 2, 1, 1, found);
        for (int64_t i = 0; i < N; i++) {
            long double truth = 0;
            for (int t = 0; t < count; t++)
                truth += (long double)term(t, i, 1);
            ck_assert_msg(fabsl((long double)found[i] - truth) <=
                              0x1.01p-53L * fabsl(truth) + 2e-17L * count,
                          "%d terms: %.17g, %.20Lg", count, found[i], truth);
        }
    }
}
END_TEST

START_TEST(one_term_is_itself)
{
    _Alignas(64) double x[N], kept[N], bins[3 * N], out[N];

    choose(_i * N_RANGE);
    for (int t = 0; t < 3000; t++) {
        for (int64_t i = 0; i < N; i++)
            x[i] = term(3 * t, i, t % 2 ? 300 : 1);
        memcpy(kept, x, sizeof x);
        simd->binned_single(N, kept);
        for (int64_t i = 0; i < N; i++)
            ck_assert(kept[i] == (fabs(x[i]) < 0x1p-941 ? 0 : x[i]));
        simd->binned_clear(N, bins);
        simd->binned_add(N, x, bins);
        simd->binned_values(N, bins, out);
        ck_assert_mem_eq(out, kept, sizeof out);
    }
}
END_TEST

/* Whatever else is added, before or after, here or on another process. */
START_TEST(what_is_not_finite_stays)
{
    static const double wild[] = {NAN, INFINITY, -INFINITY, 1e305, -1e305};
    _Alignas(64) double x[N], bins[3 * N], other[3 * N], out[N];

    choose(_i * N_RANGE);
    for (int way = 0; way < 8; way++) {
        simd->binned_clear(N, bins);
        simd->binned_clear(N, other);
        for (int step = 0; step < 3; step++) {
            for (int64_t i = 0; i < N; i++)
                x[i] = step == way % 3 && i < 5 ? wild[i] : 3;
            if (step == way % 3 && way >= 3 && way < 6)
                x[1] = x[2] = NAN;
            simd->binned_add(N, x, step == 1 ? other : bins);
        }
        if (way % 2)
            simd->binned_merge(N, other, bins);
        else {
            simd->binned_merge(N, bins, other);
            memcpy(bins, other, sizeof bins);
        }
        simd->binned_values(N, bins, out);
        ck_assert(isnan(out[0]) && out[5] == 9);
        ck_assert(way >= 3 && way < 6 ? isnan(out[1]) : out[1] == INFINITY);
        ck_assert(way >= 3 && way < 6 ? isnan(out[2]) : out[2] == -INFINITY);
        ck_assert(out[3] == INFINITY && out[4] == -INFINITY);
    }
}
END_TEST

START_TEST(zeros_are_zero)
{
    _Alignas(64) double x[N] = {0, -0.0}, bins[3 * N], out[N], zero[N] = {0};

    choose(_i * N_RANGE);
    simd->binned_clear(N, bins);
    simd->binned_values(N, bins, out);
    ck_assert_mem_eq(out, zero, sizeof out);
    for (int t = 0; t < 3; t++)
        simd->binned_add(N, x, bins);
    simd->binned_values(N, bins, out);
    ck_assert_mem_eq(out, zero, sizeof out);
    x[1] = -0.0;
    simd->binned_single(N, x);
    ck_assert_mem_eq(x, zero, sizeof x);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("binned");

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, the_order_does_not_matter, 0, N_SIMD * N_RANGE);
    tcase_add_loop_test(tests, plain_sums_differ, 0, N_RANGE);
    tcase_add_loop_test(tests, they_are_next_to_the_exact_sum, 0, N_SIMD);
    tcase_add_loop_test(tests, one_term_is_itself, 0, N_SIMD);
    tcase_add_loop_test(tests, what_is_not_finite_stays, 0, N_SIMD);
    tcase_add_loop_test(tests, zeros_are_zero, 0, N_SIMD);
    return run_case(tests, CK_FORK);
}
