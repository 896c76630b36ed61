/* Random numbers: the generator itself, streams that do not meet, and their distributions. */
#include "base/memory.h"
#include "math/rng.h"
#include "math/simd/simd.h"
#include "support/tap.h"

#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1 << 18 };

static const uint64_t seeds[] = {0, 1, 20240229, 0xfeedfacecafebeef};

#define N_SEED ((int)(sizeof seeds / sizeof seeds[0]))

static double *doubles(int64_t n)
{
    double *out;
    ck_assert_int_eq(em_allocate_doubles(em_stride(n), &out), EM_OK);
    return out;
}

static double *normals_of(em_stream stream, int64_t n)
{
    double *out = doubles(n);
    em_normals(&stream, n, out);
    return out;
}

static double *single_normals_of(em_stream stream, int64_t n)
{
    double *out = doubles(n);
    em_single_normals_from(&stream, 0, n, out);
    return out;
}

typedef double *normals_function(em_stream stream, int64_t n);
static normals_function *const both[] = {normals_of, single_normals_of};

/* ---- The generator ---- */

/* Random123 1.14, tests/kat_vectors, "philox4x32 10": counter, key, result. */
START_TEST(known_answers)
{
    static const uint32_t vectors[][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1}};
    const uint32_t *v = vectors[_i];
    const em_stream stream = {.seed = v[4] | (uint64_t)v[5] << 32,
                              .chain = v[3],
                              .iteration = v[1] >> 8 | (uint64_t)(v[2] & 0xffff) << 24,
                              .purpose = (em_purpose)(v[2] >> 16)};
    const uint64_t block = v[0] | (uint64_t)(v[1] & 0xff) << 32;

    for (uint64_t half = 0; half < 2; half++) {
        const uint64_t bits = v[6 + 2 * half] | (uint64_t)v[7 + 2 * half] << 32;
        const double expected = ((double)(bits >> 12) + 0.5) * 0x1p-52;
        ck_assert(em_uniform(&stream, 2 * block + half) == expected);
    }
}
END_TEST

/* ---- The library of vector functions ---- */

/* KB of what cannot be written of it, and of that in memory, before tests are forked: a process
 * that is forked maps files anew. */
static long long library_size, library_resident;

static void measure_library(void)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512], access[8];
    bool looks = false;

    while (maps && fgets(line, sizeof line, maps)) {
        long long kb;
        if (sscanf(line, "%*x-%*x %7s", access) == 1)
            looks = strstr(line, "libsleef") && access[0] == 'r' && access[1] != 'w';
        else if (looks && sscanf(line, "Size: %lld", &kb) == 1)
            library_size += kb;
        else if (looks && sscanf(line, "Rss: %lld", &kb) == 1)
            library_resident += kb;
    }
    if (maps)
        fclose(maps);
}

/* See simd.c. */
START_TEST(constants_are_in_memory)
{
    ck_assert_int_eq(library_resident, library_size);
}
END_TEST

/* The plain Box-Muller, on the uniforms that the vector kernel should use: eight cosines, then the
 * eight sines of the same blocks. */
START_TEST(normals_are_of_the_uniforms)
{
    const em_stream stream = {.seed = 0xfeedfacecafebeef,
                              .chain = 0x87654321,
                              .iteration = 0x98765432ff,
                              .purpose = EM_RNG_TEST};
    double *z = normals_of(stream, 400);

    for (uint64_t i = 0; i < 400; i++) {
        const uint64_t block = i / 16 * 8 + i % 8;
        const double angle = 2 * M_PI * em_uniform(&stream, 2 * block + 1);
        const double radius = sqrt(-2 * log(em_uniform(&stream, 2 * block)));
        ck_assert_double_eq_tol(z[i], radius * (i % 16 < 8 ? cos(angle) : sin(angle)), 1e-14);
    }
    em_release(&z);
}
END_TEST

/* The same in floats: 32 of eight blocks, a cosine and a sine of the pairs of words 0 and 2, then
 * of 1 and 3. An integer below 2^32 is a block's next word. */
START_TEST(single_normals_are_of_the_bits)
{
    const em_stream stream = {.seed = 0xfeedfacecafebeef,
                              .chain = 0x87654321,
                              .iteration = 0x98765432ff,
                              .purpose = EM_RNG_TEST};
    const uint64_t bound = UINT64_C(0xffffffff);
    double *z = single_normals_of(stream, 400);

    for (uint64_t i = 0; i < 400; i++) {
        const uint64_t word = (i / 32 * 8 + i % 8) * 4 + i / 8 % 2;
        const double k = floor((double)em_uniform_below(&stream, word, bound) / 2);
        const double angle = (double)em_uniform_below(&stream, word + 2, bound) * 0x1p-31 * M_PI;
        const double radius = sqrt(-2 * log((k + 0.5) * 0x1p-31));
        ck_assert_double_eq_tol(z[i], radius * (i % 32 < 16 ? cos(angle) : sin(angle)), 4e-6);
    }
    em_release(&z);
}
END_TEST

START_TEST(normals_begin_anywhere)
{
    const em_stream stream = {.seed = 9, .chain = 1};
    double *z = normals_of(stream, 100), *from = doubles(60);

    em_normals_from(&stream, 48, 52, from);
    ck_assert_mem_eq(from, z + 48, 52 * sizeof *z);
    em_release(&z);
    z = single_normals_of(stream, 100);
    em_single_normals_from(&stream, 32, 60, from);
    ck_assert_mem_eq(from, z + 32, 60 * sizeof *z);
    em_release(&z);
    em_release(&from);
}
END_TEST

START_TEST(normals_do_not_depend_on_n)
{
    const em_stream stream = {.seed = 9, .chain = 1};
    double *z = both[_i](stream, 100);

    for (int64_t n = 0; n <= 100; n++) {
        double *part = both[_i](stream, n);
        ck_assert_mem_eq(part, z, (size_t)n * sizeof *z);
        em_release(&part);
    }
    em_release(&z);
}
END_TEST

START_TEST(normals_leave_what_is_behind_their_padding)
{
    const em_stream stream = {.seed = 9};
    double *z = doubles(64);

    for (int64_t n = 0; n <= 40; n++) {
        z[em_stride(n)] = 1e300;
        em_normals(&stream, n, z);
        ck_assert(z[em_stride(n)] == 1e300);
        em_single_normals_from(&stream, 0, n, z);
        ck_assert(z[em_stride(n)] == 1e300);
    }
    em_release(&z);
}
END_TEST

/* The same bits from AVX2 and AVX-512; without fused multiply-add, nearly so: log, sqrt, sincospi
 * and a product leave at most some ulp. */
START_TEST(instruction_sets_agree)
{
    const em_philox start = {.key = 77, .low = 5ull << 40, .high = 3ull << 32};
    const bool single = _i == 1;
    const double ulps = single ? 16 * 0x1p-24 : 8 * 0x1p-52;
    double *first = doubles(N), *other = doubles(N);

    (single ? em_simd_best()->single_normals : em_simd_best()->normals)(start, N, first);
    for (int k = 0; em_simds[k]; k++) {
        if (!em_simd_runs(em_simds[k]))
            continue;
        (single ? em_simds[k]->single_normals : em_simds[k]->normals)(start, N, other);
        if (em_simds[k + 1])
            ck_assert_mem_eq(first, other, N * sizeof *first);
        for (int i = 0; i < N; i++)
            ck_assert_double_eq_tol(first[i], other[i], ulps * fabs(first[i]));
    }
    em_release(&first);
    em_release(&other);
}
END_TEST

START_TEST(uniforms_are_single_uniforms)
{
    const em_stream stream = {.seed = 4, .chain = 2, .iteration = 7, .purpose = EM_RNG_MINIBATCH};
    double out[33];

    for (uint64_t first = 0; first < 4; first++) {
        em_uniforms(&stream, first, 33, out);
        for (uint64_t i = 0; i < 33; i++)
            ck_assert(out[i] == em_uniform(&stream, first + i));
    }
}
END_TEST

/* Bounds narrow and wide, fixed and growing. */
START_TEST(integers_are_single_integers)
{
    static const uint64_t bounds[] = {1, 2, 3, 10000, 1ull << 31, (1ull << 32) - 20, 3ull << 60};
    const em_stream stream = {.seed = 4, .chain = 2, .iteration = 7, .purpose = EM_RNG_MINIBATCH};
    int64_t *out;

    ck_assert_int_eq(em_allocate(64, sizeof *out, &out), EM_OK);
    for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++)
        for (uint64_t growth = 0; growth < 2; growth++)
            for (int64_t n = 0; n <= 40; n++) {
                out[em_integers_capacity(n)] = -1;
                em_uniforms_below(&stream, n, bounds[b], growth, out);
                ck_assert_int_eq(out[em_integers_capacity(n)], -1);
                for (int64_t i = 0; i < n; i++) {
                    const uint64_t bound = bounds[b] + (uint64_t)i * growth;
                    ck_assert_int_eq(out[i],
                                     (int64_t)em_uniform_below(&stream, (uint64_t)i, bound));
                }
            }
    em_release(&out);
}
END_TEST

/* Of a bound of 3 2^30 a quarter of 32 bits are rejected; of a bound of 3, one in 2^32. */
START_TEST(kernels_decline_what_may_be_rejected)
{
    const em_stream stream = {.seed = 5, .purpose = EM_RNG_TEST};
    const em_philox start = {.key = 5, .high = (uint64_t)EM_RNG_TEST << 16};
    _Alignas(64) int64_t out[64];

    for (int k = 0; em_simds[k]; k++)
        if (em_simd_runs(em_simds[k])) {
            ck_assert(!em_simds[k]->integers(start, 64, 3ull << 30, 0, out));
            ck_assert(em_simds[k]->integers(start, 64, 3, 0, out));
            for (uint64_t i = 0; i < 64; i++)
                ck_assert_int_eq(out[i], (int64_t)em_uniform_below(&stream, i, 3));
        }
}
END_TEST

/* ---- Streams ---- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Every field at the edges of its range, and the blocks too: were two counters one, two uniforms
 * would be. Among the 17 280, two of 2^52 values agree by chance with probability 3e-8. */
START_TEST(counters_do_not_overlap)
{
    static const uint64_t chain[] = {0, 1, 2, 255, 65536, EM_ALL_CHAINS};
    static const uint64_t iteration[] = {
        0, 1, 2, 255, 256, (1 << 24) - 1, 1 << 24, 1ull << 32, (1ull << 40) - 1};
    static const uint64_t index[] = {
        0, 1, 2, 1ull << 32, 1ull << 33, 1ull << 34, (1ull << 41) - 2, (1ull << 41) - 1};
    enum { SIZE = 4 * 6 * 9 * 10 * 8 };
    double *u = doubles(SIZE);
    int n = 0;

    for (int s = 0; s < N_SEED; s++)
        for (int c = 0; c < 6; c++)
            for (int t = 0; t < 9; t++)
                for (int p = EM_RNG_DATA; p <= EM_RNG_TEST; p++)
                    for (int k = 0; k < 8; k++) {
                        const em_stream stream = {seeds[s], chain[c], iteration[t], (em_purpose)p};
                        u[n++] = em_uniform(&stream, index[k]);
                    }
    ck_assert_int_eq(n, SIZE);
    qsort(u, SIZE, sizeof *u, compare);
    for (int i = 1; i < SIZE; i++)
        ck_assert_msg(u[i - 1] < u[i], "two counters gave %.17g", u[i]);
    em_release(&u);
}
END_TEST

/* In Monte Carlo standard errors: the covariances of x and y, and of their squares. For independent
 * normals xy has variance 1 and (x^2 - 1)(y^2 - 1) variance 4. */
static double dependence(const double *x, const double *y, int64_t n)
{
    double product = 0, squares = 0;

    for (int64_t i = 0; i < n; i++) {
        product += x[i] * y[i];
        squares += (x[i] * x[i] - 1) * (y[i] * y[i] - 1);
    }
    return fmax(fabs(product), fabs(squares) / 2) / sqrt((double)n);
}

/* 5 standard errors: with 2 sums in each of 4 seeds x 6 pairs, a good generator exceeds it with
 * probability 3e-5. */
START_TEST(streams_are_independent)
{
    const em_stream base = {.seed = seeds[_i], .chain = 3, .iteration = 10};
    em_stream other[4] = {base, base, base, base};
    double *x = normals_of(base, N), *y;

    other[0].chain++;
    other[1].iteration++;
    other[2].purpose = EM_RNG_INIT;
    other[3].seed++;
    for (int k = 0; k < 4; k++) {
        y = normals_of(other[k], N);
        ck_assert_double_lt(dependence(x, y, N), 5);
        for (int64_t i = 0; i < N; i++)
            y[i] += 0.02 * x[i];
        ck_assert_double_gt(dependence(x, y, N), 5); /* 0.02 sqrt(N) = 10, give or take 1 */
        em_release(&y);
    }
    ck_assert_double_lt(dependence(x, x + 1, N - 1), 5);
    ck_assert_double_lt(dependence(x, x + 8, N - 8), 5); /* cosine and sine of one block */
    em_release(&x);
}
END_TEST

/* ---- Distributions ---- */

/* The largest of four sample moments' distances from the normal's, in standard errors: the
 * variances of x, x^2, x^3, x^4 are 1, 2, 15, 96. */
static double moment_error(const double *x, int64_t n, double scale)
{
    static const double mean[] = {0, 1, 0, 3}, variance[] = {1, 2, 15, 96};
    double sum[4] = {0}, worst = 0;

    for (int64_t i = 0; i < n; i++) {
        double power = 1;
        for (int k = 0; k < 4; k++) {
            power *= scale * x[i];
            sum[k] += power - mean[k];
        }
    }
    for (int k = 0; k < 4; k++)
        worst = fmax(worst, fabs(sum[k]) / sqrt(variance[k] * (double)n));
    return worst;
}

/* sqrt(n) times the Kolmogorov-Smirnov distance of sorted x, times `scale`, to the normal. */
static double kolmogorov(const double *x, int64_t n, double scale)
{
    double worst = 0;

    for (int64_t i = 0; i < n; i++) {
        const double p = erfc(-scale * x[i] / M_SQRT2) / 2;
        worst = fmax(worst, fmax((double)(i + 1) / (double)n - p, p - (double)i / (double)n));
    }
    return worst * sqrt((double)n);
}

/* 5 standard errors of each moment; P(sqrt(n) D > 2.5) = 2 exp(-2 2.5^2) = 7e-6. A scale wrong by a
 * factor 1 + s moves the mean of x^2 by 2 s sqrt(n / 2) standard errors, 14 for s = 0.02, and
 * sqrt(n) D by s phi(1) sqrt(n), 6 for s = 0.05. */
START_TEST(normals_are_normal)
{
    double *x = both[_i % 2]((em_stream){.seed = seeds[_i / 2], .purpose = EM_RNG_TEST}, N);

    ck_assert_double_lt(moment_error(x, N, 1), 5);
    ck_assert_double_gt(moment_error(x, N, 1.02), 5);
    qsort(x, N, sizeof *x, compare);
    ck_assert_double_lt(kolmogorov(x, N, 1), 2.5);
    ck_assert_double_gt(kolmogorov(x, N, 1.05), 2.5);
    em_release(&x);
}
END_TEST

/* Numbers beyond t on either side against n erfc(t / sqrt 2), Poisson: at t = 4, n = 2^22, 266 +-
 * 16; 5 standard errors. */
START_TEST(tails_are_normal)
{
    enum { CHAINS = 16 };
    double count[2][3] = {{0}};

    for (uint64_t chain = 0; chain < CHAINS; chain++) {
        double *x = both[_i % 2]((em_stream){.seed = seeds[_i / 2], .chain = chain}, N);
        for (int i = 0; i < N; i++)
            for (int t = 0; t < 3; t++)
                count[x[i] > 0][t] += fabs(x[i]) > t + 2;
        em_release(&x);
    }
    for (int side = 0; side < 2; side++)
        for (int t = 0; t < 3; t++) {
            const double expected = CHAINS * (double)N * erfc((t + 2) / M_SQRT2) / 2;
            ck_assert_double_eq_tol(count[side][t], expected, 5 * sqrt(expected));
        }
}
END_TEST

/* Chi-square with 63 degrees of freedom: mean 63, variance 126, 5.5 standard deviations (its upper
 * tail is heavier than the normal's). */
START_TEST(uniforms_are_uniform)
{
    const em_stream stream = {.seed = seeds[_i], .purpose = EM_RNG_TEST};
    double count[64] = {0}, chi2 = 0, *u = doubles(N);

    em_uniforms(&stream, 0, N, u);
    for (int i = 0; i < N; i++) {
        ck_assert(u[i] > 0 && u[i] < 1);
        count[(int)(64 * u[i])]++;
    }
    for (int k = 0; k < 64; k++)
        chi2 += pow(count[k] - N / 64.0, 2) / (N / 64.0);
    ck_assert_double_lt(chi2, 63 + 5.5 * sqrt(126));
    em_release(&u);
}
END_TEST

/* In each remainder by three N / 3 +- sqrt(2 N / 9), for a bound of 3 and for those of 3 2^30 and
 * 3 2^62, where scaling 32 or 64 bits without rejection would give half of all to the remainder 0.
 */
START_TEST(integers_are_unbiased)
{
    static const uint64_t bounds[] = {3, 3ull << 30, 3ull << 62};
    const em_stream stream = {.seed = seeds[_i % N_SEED], .purpose = EM_RNG_TEST};
    const uint64_t bound = bounds[_i / N_SEED];
    double count[3] = {0};

    for (uint64_t i = 0; i < N; i++) {
        const uint64_t k = em_uniform_below(&stream, i, bound);
        ck_assert_uint_lt(k, bound);
        count[k % 3]++;
    }
    for (int r = 0; r < 3; r++)
        ck_assert_double_eq_tol(count[r], N / 3.0, 5 * sqrt(2.0 * N / 9));
    ck_assert_uint_eq(em_uniform_below(&stream, 17, 1), 0);
}
END_TEST

/* ---- Shuffles ---- */

START_TEST(shuffles_are_permutations)
{
    static const int64_t sizes[] = {1, 2, 3, 7, 8, 9, 1000, 4097, 60000};
    const int64_t n = sizes[_i];
    char *seen = calloc((size_t)n, 1);

    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        const em_shuffle shuffle = em_shuffle_of(&(em_stream){1, 2, epoch, EM_RNG_EPOCH}, n);
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = em_shuffle_at(&shuffle, i);
            ck_assert(at >= 0 && at < n);
            ck_assert_int_eq(seen[at]++, (int)epoch);
        }
    }
    free(seen);
}
END_TEST

/* chi^2 of the k! cells that shuffles of k numbers fall into, in its standard deviations. */
static double shuffles_deviate(int64_t k, int64_t n_cell, int64_t n, uint64_t n_key)
{
    int64_t count[6 * 6 * 6 * 6 * 6] = {0};
    double chi2 = 0;

    for (int64_t t = 0; t < n; t++) {
        const em_stream stream = {3, 0, (uint64_t)t % n_key, EM_RNG_EPOCH};
        const em_shuffle shuffle = em_shuffle_of(&stream, k);
        int64_t cell = 0;
        for (int64_t i = 0; i + 1 < k; i++)
            cell = cell * k + em_shuffle_at(&shuffle, i);
        count[cell]++;
    }
    for (size_t i = 0; i < sizeof count / sizeof *count; i++)
        chi2 += (double)(count[i] * count[i]);
    chi2 = chi2 * (double)n_cell / (double)n - (double)n;
    return (chi2 - (double)(n_cell - 1)) / sqrt(2.0 * (double)(n_cell - 1));
}

/* All permutations of 3 .. 6 numbers are equally likely; a tenth of the keys are not enough. */
START_TEST(shuffles_are_uniform)
{
    static const int64_t factorial[] = {1, 1, 2, 6, 24, 120, 720};
    const int64_t n = 100 * factorial[_i];

    ck_assert_double_lt(fabs(shuffles_deviate(_i, factorial[_i], n, (uint64_t)n)), 4.5);
    ck_assert_double_gt(shuffles_deviate(_i, factorial[_i], n, (uint64_t)n / 10), 4.5);
}
END_TEST

int main(void)
{
    measure_library();
    Suite *suite = suite_create("rng");
    TCase *generator = tcase_create("generator"), *streams = tcase_create("streams"),
          *distribution = tcase_create("distributions");

    tcase_add_loop_test(generator, known_answers, 0, 3);
    tcase_add_test(generator, normals_are_of_the_uniforms);
    tcase_add_test(generator, single_normals_are_of_the_bits);
    tcase_add_loop_test(generator, normals_do_not_depend_on_n, 0, 2);
    tcase_add_test(generator, normals_leave_what_is_behind_their_padding);
    tcase_add_loop_test(generator, instruction_sets_agree, 0, 2);
    tcase_add_test(generator, constants_are_in_memory);
    tcase_add_test(generator, normals_begin_anywhere);
    tcase_add_test(generator, uniforms_are_single_uniforms);
    tcase_add_test(generator, integers_are_single_integers);
    tcase_add_test(generator, kernels_decline_what_may_be_rejected);
    tcase_add_test(streams, counters_do_not_overlap);
    tcase_add_loop_test(streams, streams_are_independent, 0, N_SEED);
    tcase_add_loop_test(distribution, normals_are_normal, 0, 2 * N_SEED);
    tcase_add_loop_test(distribution, tails_are_normal, 0, 2 * N_SEED);
    tcase_add_loop_test(distribution, uniforms_are_uniform, 0, N_SEED);
    tcase_add_loop_test(distribution, integers_are_unbiased, 0, 3 * N_SEED);
    tcase_set_tags(streams, "law");
    tcase_add_loop_test(distribution, shuffles_are_permutations, 0, 9);
    tcase_add_loop_test(distribution, shuffles_are_uniform, 3, 7);
    tcase_set_tags(distribution, "law");
    tcase_set_timeout(generator, 60);
    tcase_set_timeout(streams, 60);
    tcase_set_timeout(distribution, 60);
    suite_add_tcase(suite, generator);
    suite_add_tcase(suite, streams);
    suite_add_tcase(suite, distribution);

    return run_suite(suite, CK_FORK_GETENV);
}
