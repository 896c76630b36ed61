/* Vector loops against long double, for every instruction set of this processor. */
#include "base/memory.h"
#include "math/rng.h"
#include "math/simd/tokens.h"
#include "math/simd/vector.h"
#include "support/simds.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4096 };

static double a[N] __attribute__((aligned(64)));
static double softplus[N] __attribute__((aligned(64)));
static double sigmoid[N] __attribute__((aligned(64)));

/* Special values first, then logits of growing size; the largest reach 1000 either way. */
static void fill(void)
{
    static const double special[] = {
        0.0,   -0.0,   1e-17,  -1e-17,  1e-300,  -1e-300,  36.7,     -36.7,    37.5,  -37.5,
        700.0, -700.0, 708.4,  -708.4,  709.7,   -709.7,   740.0,    -740.0,   745.1, -745.1,
        746.0, -746.0, 1000.0, -1000.0, DBL_MAX, -DBL_MAX, INFINITY, -INFINITY};
    enum { COUNT = sizeof special / sizeof special[0] };

    em_normals(&(em_stream){.seed = 1, .purpose = EM_RNG_TEST}, N, a);
    for (int i = 0; i < N; i++)
        a[i] = i < COUNT ? special[i] : a[i] * pow(10, 3.0 * i / N - 0.6);
}

/* Within `ulps` of 2^-52 relative, or of the spacing of subnormals. */
static void near(double found, long double expected, double ulps, double at)
{
    const long double tolerance = ulps * fmaxl(0x1p-52L * fabsl(expected), 0x1p-1074L);

    ck_assert_msg(found == (double)expected || fabsl(found - expected) <= tolerance,
                  "at %.17g: found %.17g, expected %.17Lg", at, found, expected);
}

START_TEST(logistic_is_accurate)
{
    const em_simd *simd = em_simds[_i];

    if (!em_simd_runs(simd))
        return;
    fill();
    simd->logistic(N, a, softplus, sigmoid);
    for (int i = 0; i < N; i++) {
        const long double x = a[i], e = expl(-fabsl(x));
        near(softplus[i], fmaxl(x, 0) + log1pl(e), 3, a[i]);
        near(sigmoid[i], (x < 0 ? e : 1) / (1 + e), 3, a[i]);
    }
}
END_TEST

START_TEST(exp_is_accurate)
{
    const em_simd *simd = em_simds[_i];

    if (!em_simd_runs(simd))
        return;
    fill();
    simd->exp(N, a, softplus);
    for (int i = 0; i < N; i++)
        near(softplus[i], expl(a[i]), 2, a[i]);
}
END_TEST

/* Of both signs up to 1, beyond which it is SLEEF's; whatever is beside them. */
START_TEST(exp_near_0_is_accurate)
{
    const em_simd *simd = em_simds[_i];

    if (!em_simd_runs(simd))
        return;
    for (int i = 0; i < N; i++)
        a[i] = ldexp(2.0 * i / N - 1, i % 64 == 63 ? 8 : -(i % 5));
    a[0] = -0.0;
    simd->exp_near_0(N, a, softplus);
    for (int i = 0; i < N; i++)
        near(softplus[i], expl(a[i]), 2, a[i]);
    for (int i = 0; i < N; i++)
        sigmoid[i] = i % 3 == 0 ? a[i] : 700;
    simd->exp_near_0(N, sigmoid, sigmoid);
    for (int i = 0; i < N; i += 3)
        ck_assert_double_eq(sigmoid[i], softplus[i]);
    fill();
    simd->exp_near_0(N, a, softplus);
    for (int i = 0; i < N; i++)
        near(softplus[i], expl(a[i]), 2, a[i]);
}
END_TEST

START_TEST(log1p_is_accurate)
{
    const em_simd *simd = em_simds[_i];

    if (!em_simd_runs(simd))
        return;
    fill();
    for (int i = 0; i < N; i++)
        a[i] = fabs(a[i]) < 1e300 ? fabs(a[i]) : 0;
    simd->log1p(N, a, softplus);
    for (int i = 0; i < N; i++)
        near(softplus[i], log1pl(a[i]), 3, a[i]);
}
END_TEST

START_TEST(log_is_accurate)
{
    const em_simd *simd = em_simds[_i];

    if (!em_simd_runs(simd))
        return;
    fill();
    for (int i = 0; i < N; i++)
        a[i] = isnormal(a[i]) ? fabs(a[i]) : 1;
    simd->log(N, a, softplus);
    for (int i = 0; i < N; i++)
        near(softplus[i], logl(a[i]), 3, a[i]);
}
END_TEST

/* For counts y a sum over k < y of log(1 + k / phi), whose slope is that of -k / (phi + k). */
START_TEST(log_rising_is_accurate)
{
    enum { MOST = 2000 };
    const em_simd *simd = em_simds[_i];

    if (!em_simd_runs(simd))
        return;
    for (double phi = 1e-8; phi < 1e20; phi *= 3.7) {
        long double value = 0, slope = 0;
        for (int y = 0; y < MOST; y++)
            a[y] = y;
        simd->log_rising(MOST, a, phi, softplus, sigmoid);
        for (int y = 0; y < MOST; y++) {
            const long double bound = 2e-15L * (2 + y + fabsl(value));
            ck_assert_msg(fabsl(softplus[y] - value) < bound, "%d %g: %.17g, expected %.17Lg", y,
                          phi, softplus[y], value);
            ck_assert_msg(fabsl(sigmoid[y] - slope) < bound, "%d %g: slope %.17g, expected %.17Lg",
                          y, phi, sigmoid[y], slope);
            value += log1pl(y / (long double)phi);
            slope -= y / ((long double)phi + y);
        }
    }
}
END_TEST

/* Halves, as Student's t has them: log(Gamma(phi + 1/2) / Gamma(phi)) - log(phi) / 2. */
START_TEST(log_rising_of_a_half)
{
    for (double phi = 1e-3; phi < 1e3; phi *= 2.3) {
        const double h = 1e-5 * phi;
        double up[8] __attribute__((aligned(64))), down[8] __attribute__((aligned(64)));
        for (int i = 0; i < 8; i++)
            a[i] = 0.5;
        em_log_rising(8, a, phi, softplus, sigmoid);
        ck_assert_double_eq_tol(softplus[3],
                                (double)(lgammal(phi + 0.5L) - lgammal(phi) - logl(phi) / 2),
                                3e-15 * (1 + fabs(softplus[3])));
        em_log_rising(8, a, phi + h, up, down);
        const double above = up[0];
        em_log_rising(8, a, phi - h, up, down);
        ck_assert_double_eq_tol(sigmoid[0], phi * (above - up[0]) / (2 * h), 1e-9);
    }
}
END_TEST

START_TEST(nan_stays_in_its_place)
{
    for (int k = 0; em_simds[k]; k++)
        for (int at = 0; at < 16 && em_simd_runs(em_simds[k]); at++) {
            fill();
            a[at] = NAN;
            em_simds[k]->logistic(16, a, softplus, sigmoid);
            for (int i = 0; i < 16; i++)
                ck_assert(isnan(softplus[i]) == (i == at) && isnan(sigmoid[i]) == (i == at));
            em_simds[k]->exp(16, a, softplus);
            for (int i = 0; i < 16; i++)
                ck_assert(isnan(softplus[i]) == (i == at));
            em_simds[k]->exp_near_0(16, a, softplus);
            for (int i = 0; i < 16; i++)
                ck_assert(isnan(softplus[i]) == (i == at));
            for (int i = 0; i < 16; i++)
                a[i] = i == at ? NAN : i;
            em_simds[k]->log1p(16, a, softplus);
            for (int i = 0; i < 16; i++)
                ck_assert(isnan(softplus[i]) == (i == at));
            em_simds[k]->log_rising(16, a, 3, softplus, sigmoid);
            for (int i = 0; i < 16; i++)
                ck_assert(isnan(softplus[i]) == (i == at) && isnan(sigmoid[i]) == (i == at));
        }
}
END_TEST

/* Wherever an element stands it gets the same bits, and an output may be the input. */
START_TEST(elements_are_independent)
{
    double shifted[16] __attribute__((aligned(64))), out[16] __attribute__((aligned(64)));

    fill();
    em_logistic(N, a, softplus, sigmoid);
    for (int i = 0; i + 16 <= N; i += 13) {
        for (int k = 0; k < 16; k++)
            shifted[k] = a[i + k];
        em_logistic(16, shifted, shifted, out);
        ck_assert_mem_eq(shifted, softplus + i, sizeof shifted);
        ck_assert_mem_eq(out, sigmoid + i, sizeof out);
    }
    em_logistic(N, a, softplus, a);
    ck_assert_mem_eq(a, sigmoid, sizeof a);
    fill();
    em_exp(N, a, softplus);
    em_exp(N, a, a);
    ck_assert_mem_eq(a, softplus, sizeof a);
}
END_TEST

START_TEST(environment_names_the_instruction_set)
{
    const em_simd *simd = em_simds[_i], *found = NULL;
    double x[16] __attribute__((aligned(64)));

    ck_assert_int_eq(setenv("EMASS_SIMD", simd->name, 1), 0);
    if (!em_simd_runs(simd)) {
        ck_assert_int_eq(em_simd_check(), EM_EUSAGE);
        return;
    }
    ck_assert_int_eq(em_simd_check(), EM_OK);
    ck_assert_ptr_eq(em_simd_best(), simd);
    ck_assert_int_eq(em_simd_find("sse9", &found), EM_EUSAGE);
    ck_assert_ptr_nonnull(strstr(em_error_text(), "found sse9"));
    ck_assert_ptr_nonnull(strstr(em_error_text(), simd->name));
    ck_assert_str_eq(em_token_kernels_best()->name, simd->name);
    fill();
    em_exp(16, a, x); /* which it then computes with */
    simd->exp(16, a, softplus);
    ck_assert_mem_eq(x, softplus, sizeof x);
}
END_TEST

int main(void)
{
    TCase *all = tcase_create("vector");

    add_simd_test(all, logistic_is_accurate);
    add_simd_test(all, exp_is_accurate);
    add_simd_test(all, exp_near_0_is_accurate);
    add_simd_test(all, log1p_is_accurate);
    add_simd_test(all, log_is_accurate);
    add_simd_test(all, log_rising_is_accurate);
    tcase_add_test(all, log_rising_of_a_half);
    tcase_add_test(all, nan_stays_in_its_place);
    tcase_add_test(all, elements_are_independent);
    add_simd_test(all, environment_names_the_instruction_set);

    return run_case(all, CK_FORK_GETENV);
}
