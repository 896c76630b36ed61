/* Diagnostics: equal to the R package posterior (diag_golden.h), and sound where it is not. */
#include "base/memory.h"
#include "diagnostics/diagnoses.h"
#include "diagnostics/fft.h"
#include "math/rng.h"
#include "math/special.h"
#include "support/tap.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct golden {
    const char *kind;
    int64_t n_chain, n_draw, seed;
    double diagnosis[6]; /* mean, sd, mcse_mean, ess_bulk, ess_tail, r_hat */
    double quantile[3];  /* 5, 50, 95 % */
} golden;

static const golden table[] = {
#include "unit/diagnostics/diag_golden.h"
};

enum { N_GOLDEN = sizeof table / sizeof *table, MAX_DRAWS = 8192 };

static double draws[MAX_DRAWS];
static em_diag *diag;

static double next_uniform(int64_t *state)
{
    *state = 16807 * *state % 2147483647;
    return (double)*state / 2147483647;
}

/* One draw, as in diag_golden.R; `before` is the one before it in its chain, NaN for the first. */
static double make_draw(const golden *g, int64_t i, double u, double v, double before)
{
    int64_t c = i / g->n_draw, t = i % g->n_draw;
    const char *kind = g->kind;

    if (!strcmp(kind, "large"))
        return 1e6 + u;
    if (!strcmp(kind, "slow"))
        return t ? 0.95 * before + (u - 0.5) : u - 0.5;
    if (!strcmp(kind, "antithetic"))
        return t ? -0.75 * before + (u - 0.5) : u - 0.5;
    if (!strcmp(kind, "alternating"))
        return (double)(t % 2);
    if (!strcmp(kind, "heavy"))
        return (u - 0.5) / v;
    if (!strcmp(kind, "shifted"))
        return u + 0.25 * (double)c;
    if (!strcmp(kind, "widening"))
        return (u - 0.5) * (double)(1 + c);
    if (!strcmp(kind, "trend"))
        return u + (double)t / (double)g->n_draw;
    if (!strcmp(kind, "stuck"))
        return c ? u : 0.3;
    if (!strcmp(kind, "constant"))
        return 0.1;
    if (!strcmp(kind, "ties"))
        return floor(5 * u);
    if (!strcmp(kind, "binary"))
        return floor(2 * u);
    if (!strcmp(kind, "rare"))
        return floor(1.04 * u);
    if (!strcmp(kind, "nan"))
        return i == 2 ? NAN : u;
    if (!strcmp(kind, "infinite"))
        return i == 2 ? INFINITY : u;
    if (!strcmp(kind, "minus_infinite"))
        return i == 2 ? -INFINITY : u;
    if (!strcmp(kind, "mostly_infinite"))
        return u < 0.75 ? INFINITY : u;
    ck_assert_str_eq(kind, "iid");
    return u;
}

static void make_draws(const golden *g)
{
    int64_t u = g->seed, v = g->seed + 1;

    ck_assert_int_le(g->n_chain * g->n_draw, MAX_DRAWS);
    for (int64_t i = 0; i < g->n_chain * g->n_draw; i++) {
        double first = next_uniform(&u), second = next_uniform(&v);

        draws[i] = make_draw(g, i, first, second, i ? draws[i - 1] : NAN);
    }
}

static bool close_to(double x, double expected)
{
    return isfinite(expected) ? fabs(x - expected) <= 1e-8 * fabs(expected)
                              : x == expected || (isnan(x) && isnan(expected));
}

static void check_golden(const golden *g)
{
    static const char *const name[] = {"mean",  "sd", "mcse_mean", "ess_bulk", "ess_tail",
                                       "r_hat", "5%", "50%",       "95%"};
    static const double probability[] = {0.05, 0.5, 0.95};
    em_diagnosis d;
    double value[9];

    make_draws(g);
    ck_assert_int_eq(em_diagnose(diag, g->n_chain, g->n_draw, draws, &d), EM_OK);
    memcpy(value, (double[]){d.mean, d.sd, d.mcse_mean, d.ess_bulk, d.ess_tail, d.r_hat},
           6 * sizeof *value);
    em_quantiles(diag, g->n_chain * g->n_draw, draws, 3, probability, value + 6);
    for (int i = 0; i < 9; i++) {
        double expected = i < 6 ? g->diagnosis[i] : g->quantile[i - 6];

        ck_assert_msg(close_to(value[i], expected), "%s, %lld x %lld: %s is %.17g, not %.17g",
                      g->kind, (long long)g->n_chain, (long long)g->n_draw, name[i], value[i],
                      expected);
    }
}

static void start(void)
{
    ck_assert_int_eq(em_diag_create(&diag), EM_OK);
}

static void stop(void)
{
    em_diag_destroy(&diag);
    ck_assert_ptr_null(diag);
}

START_TEST(equals_posterior)
{
    check_golden(&table[_i]);
}
END_TEST

/* One work space for all sizes, in an order that grows and shrinks it. */
START_TEST(work_space_carries_over)
{
    for (int i = 0; i < N_GOLDEN; i++)
        check_golden(&table[i]);
    for (int i = N_GOLDEN - 1; i >= 0; i--)
        check_golden(&table[i]);
}
END_TEST

START_TEST(allocates_nothing_when_grown)
{
    int64_t before;

    for (int i = 0; i < N_GOLDEN; i++)
        check_golden(&table[i]);
    before = em_allocation_count();
    for (int i = 0; i < N_GOLDEN; i++)
        check_golden(&table[i]);
    ck_assert_int_eq(em_allocation_count(), before);
}
END_TEST

/* A file of constants is small, however many there are: neither sorted nor transformed, they take
 * no work space. */
START_TEST(constants_are_not_worked_on)
{
    static const double p[] = {0.05, 0.5, 1};
    const int64_t before = em_allocation_count();
    em_diagnosis d;
    double q[3];

    for (int i = 0; i < MAX_DRAWS; i++)
        draws[i] = 0.1;
    em_diagnose(diag, 4, MAX_DRAWS / 4, draws, &d);
    em_quantiles(diag, MAX_DRAWS, draws, 3, p, q);
    ck_assert_int_eq(em_allocation_count(), before);
    ck_assert(d.mean == 0.1 && d.sd == 0 && isnan(d.mcse_mean));
    ck_assert(isnan(d.r_hat) && isnan(d.ess_bulk) && isnan(d.ess_tail));
    ck_assert(q[0] == 0.1 && q[1] == 0.1 && q[2] == 0.1);
    draws[MAX_DRAWS - 1] = 0.2;
    em_diagnose(diag, 4, MAX_DRAWS / 4, draws, &d);
    ck_assert(d.sd > 0 && em_allocation_count() > before);
}
END_TEST

START_TEST(convergence_alone_is_the_same)
{
    em_diagnosis all, alone;

    make_draws(&table[0]);
    em_diagnose(diag, table[0].n_chain, table[0].n_draw, draws, &all);
    em_diagnose_convergence(diag, table[0].n_chain, table[0].n_draw, draws, &alone);
    ck_assert(alone.r_hat == all.r_hat && alone.ess_bulk == all.ess_bulk &&
              alone.ess_tail == all.ess_tail);
    ck_assert(isnan(alone.mean) && isnan(alone.sd) && isnan(alone.mcse_mean));
}
END_TEST

/* Chains that never move, each elsewhere: nothing agrees. */
START_TEST(stuck_chains_have_infinite_r_hat)
{
    em_diagnosis d;

    for (int i = 0; i < 300; i++)
        draws[i] = 0.1 + i / 100;
    em_diagnose(diag, 3, 100, draws, &d);
    ck_assert(isinf(d.r_hat));
    ck_assert(d.ess_bulk < 6);
}
END_TEST

/* Diagnostics are free of units, however small: posterior takes spreads below 2e-16 for constant.
 */
START_TEST(scale_does_not_matter)
{
    em_diagnosis one, scaled;

    make_draws(&table[2]);
    em_diagnose(diag, 4, 250, draws, &one);
    for (int i = 0; i < 1000; i++)
        draws[i] = ldexp(draws[i], -100);
    em_diagnose(diag, 4, 250, draws, &scaled);
    ck_assert(one.r_hat == scaled.r_hat && one.ess_bulk == scaled.ess_bulk);
    ck_assert(close_to(ldexp(scaled.mcse_mean, 100), one.mcse_mean));
}
END_TEST

/*
 * Sixteen copies of a chain take turns at random; each keeps its sign for a visit of 40 of its own
 * draws. The ESS of the mean is about the number of visits, by which z scores of the mean have a
 * standard deviation of 1 over replicates. The broken twin, without the visits, is too sure.
 */
START_TEST(visits_bound_the_ess)
{
    enum { COPIES = 16, LENGTH = 40, CHAINS = 2, DRAWS = 2000, REPLICATES = 60 };
    static double x[CHAINS * DRAWS], visit[CHAINS * DRAWS];
    double square = 0, broken = 0;

    for (uint64_t r = 0; r < REPLICATES; r++) {
        em_visits *visits;
        em_diagnosis d;
        for (uint64_t c = 0; c < CHAINS; c++) {
            const em_stream turn = {7, c, r, 0}, sign = {8, c, r, 0};
            int done[COPIES] = {0};
            for (uint64_t i = 0; i < DRAWS; i++) {
                const int copy = (int)(COPIES * em_uniform(&turn, i));
                const int number = copy + COPIES * (done[copy]++ / LENGTH);
                visit[c * DRAWS + i] = number;
                x[c * DRAWS + i] = (em_uniform(&sign, (uint64_t)number) < 0.5 ? -10 : 10) +
                                   em_uniform(&turn, DRAWS + i) - 0.5;
            }
        }
        ck_assert_int_eq(em_visits_create(CHAINS, DRAWS, visit, &visits), EM_OK);
        em_diagnose(diag, CHAINS, DRAWS, x, &d);
        broken += d.mean * d.mean / (d.mcse_mean * d.mcse_mean) / REPLICATES;
        em_diag_set_visits(diag, visits);
        em_diagnose(diag, CHAINS, DRAWS, x, &d);
        em_diag_set_visits(diag, NULL);
        square += d.mean * d.mean / (d.mcse_mean * d.mcse_mean) / REPLICATES;
        ck_assert(d.ess_bulk < 2.0 * CHAINS * DRAWS / LENGTH);
        em_release_owner(&visits);
    }
    ck_assert_msg(square > 0.5 && square < 1.8, "mean square z %g", square);
    ck_assert_msg(broken > 3, "mean square z without visits %g", broken);
}
END_TEST

/* Four visits in a row, of one draw each, have one sign. Their ESS is about a quarter of what it
 * were if visits did not depend on each other, whatever their numbers are. */
START_TEST(neighbouring_visits_may_be_alike)
{
    enum { CHAINS = 4, DRAWS = 1000 };
    static double x[CHAINS * DRAWS], visit[CHAINS * DRAWS];
    double ess[2];

    for (int way = 0; way < 2; way++) {
        em_visits *visits;
        for (uint64_t c = 0; c < CHAINS; c++) {
            const em_stream sign = {9, c, 0, 0};
            for (uint64_t i = 0; i < DRAWS; i++) {
                visit[c * DRAWS + i] = way ? (double)(7919 * i % 10007) : (double)i;
                x[c * DRAWS + i] = em_uniform(&sign, i / 4) < 0.5 ? -1 : 1;
            }
        }
        ck_assert_int_eq(em_visits_create(CHAINS, DRAWS, visit, &visits), EM_OK);
        ess[way] = em_visits_ess(visits, x, -1);
        em_release_owner(&visits);
    }
    ck_assert(ess[0] == ess[1]);
    ck_assert_msg(ess[0] > CHAINS * DRAWS / 5.0 && ess[0] < CHAINS * DRAWS / 3.0, "ESS %g", ess[0]);
}
END_TEST

/* Draws that are not tempered are of one visit a chain, which bounds nothing. */
START_TEST(one_visit_a_chain_bounds_nothing)
{
    static double visit[1000];
    em_visits *visits;

    make_draws(&table[2]);
    ck_assert_int_eq(em_visits_create(4, 250, visit, &visits), EM_OK);
    ck_assert(isinf(em_visits_ess(visits, draws, -1)));
    em_release_owner(&visits);
}
END_TEST

static bool are_same(const em_diagnosis *a, const em_diagnosis *b)
{
    return a->r_hat == b->r_hat && a->ess_bulk == b->ess_bulk && a->ess_tail == b->ess_tail &&
           memcmp(a->quantile, b->quantile, sizeof a->quantile) == 0;
}

/* A check of a run and the summary after it: the second adds the moments alone. */
START_TEST(what_is_known_is_not_computed_again)
{
    em_diagnosis plain, check, summary, twin, changed;
    em_diagnoses *known;
    double q[] = {0.05, 0.5, 0.95};

    make_draws(&table[2]);
    em_diagnose(diag, 4, 250, draws, &plain);
    em_quantiles(diag, 1000, draws, 3, q, q);
    ck_assert_int_eq(em_diagnoses_create(&known), EM_OK);
    em_diag_set_known(diag, known);
    em_diagnose_convergence(diag, 4, 250, draws, &check);
    ck_assert(are_same(&check, &plain) && isnan(check.mean));
    ck_assert(memcmp(check.quantile, q, sizeof q) == 0);
    ck_assert(em_diagnosed_quantile(&check, 0.95) == q[2]);
    ck_assert(isnan(em_diagnosed_quantile(&check, 0.94)));

    check.r_hat = 7; /* as no draws have it */
    em_diagnoses_put(known, em_hash_of(draws, 1000 * sizeof *draws), &check);
    em_diagnose(diag, 4, 250, draws, &summary);
    ck_assert(summary.r_hat == 7 && summary.mean == plain.mean);
    ck_assert(summary.sd == plain.sd && summary.mcse_mean == plain.mcse_mean);
    em_diagnose_convergence(diag, 4, 250, draws, &twin);
    ck_assert(twin.r_hat == 7 && twin.mean == plain.mean);

    draws[999] = nextafter(draws[999], 9);
    em_diagnose(diag, 4, 250, draws, &changed);
    ck_assert(changed.r_hat < 7);
    em_diag_set_known(diag, NULL);
    em_diagnoses_destroy(&known);
}
END_TEST

START_TEST(many_are_known)
{
    em_diagnoses *known;
    em_hash key[3000];

    ck_assert_int_eq(em_diagnoses_create(&known), EM_OK);
    for (int i = 0; i < 3000; i++) { /* a third of them in one slot */
        key[i] = (em_hash){i % 3 ? (uint64_t)i * 0x9e3779b97f4a7c15u : 5, (uint64_t)i};
        ck_assert(!em_diagnoses_find(known, key[i]));
        em_diagnoses_put(known, key[i], &(em_diagnosis){.mean = -1});
        em_diagnoses_put(known, key[i], &(em_diagnosis){.mean = i});
    }
    for (int i = 0; i < 3000; i++)
        ck_assert_double_eq(em_diagnoses_find(known, key[i])->mean, i);
    em_diagnoses_clear(known);
    ck_assert(!em_diagnoses_find(known, key[0]));
    em_diagnoses_destroy(&known);
}
END_TEST

/* Where every draw is a visit of its own, nothing changes but what exceeds the number of draws. */
START_TEST(visits_of_one_draw_bound_nothing_more)
{
    static double visit[1000];
    em_visits *visits;
    em_diagnosis plain, bounded;

    make_draws(&table[2]);
    for (int i = 0; i < 1000; i++)
        visit[i] = i;
    ck_assert_int_eq(em_visits_create(4, 250, visit, &visits), EM_OK);
    em_diagnose(diag, 4, 250, draws, &plain);
    em_diag_set_visits(diag, visits);
    em_diagnose(diag, 4, 250, draws, &bounded);
    em_diag_set_visits(diag, NULL);
    ck_assert(bounded.ess_bulk <= 1001 && bounded.ess_bulk <= plain.ess_bulk);
    ck_assert(bounded.ess_bulk == plain.ess_bulk || plain.ess_bulk > 990);
    ck_assert(bounded.r_hat == plain.r_hat && bounded.sd == plain.sd);
    em_release_owner(&visits);
}
END_TEST

START_TEST(few_draws_are_undefined)
{
    em_diagnosis d;

    for (int n_draw = 0; n_draw < 4; n_draw++) {
        for (int i = 0; i < 6; i++)
            draws[i] = i;
        ck_assert_int_eq(em_diagnose(diag, 2, n_draw, draws, &d), EM_OK);
        ck_assert(isnan(d.r_hat) && isnan(d.ess_bulk) && isnan(d.ess_tail) && isnan(d.mcse_mean));
        ck_assert(isnan(d.sd) == (n_draw == 0));
        ck_assert(n_draw ? d.mean == n_draw - 0.5 : isnan(d.mean));
    }
}
END_TEST

START_TEST(quantiles_interpolate)
{
    double p[] = {0, 0.25, 1}, q[3], x[] = {4, -1, 2};

    em_quantiles(diag, 3, x, 3, p, q);
    ck_assert(q[0] == -1 && q[1] == 0.5 && q[2] == 4);
    em_quantiles(diag, 1, x, 3, p, q);
    ck_assert(q[0] == 4 && q[1] == 4 && q[2] == 4);
    em_quantiles(diag, 0, x, 3, p, q);
    ck_assert(isnan(q[0]) && isnan(q[1]) && isnan(q[2]));
}
END_TEST

/* Phi(quantile(p)) = p. A relative error of z grows z^2-fold in Phi: AS 241's own 1e-16, and the
 * roundings of z, of -z / sqrt(2) and of erfc, about four ulps in all. */
START_TEST(normal_quantile_inverts_erfc)
{
    for (double p = 1e-300; p < 0.5; p *= 1.37) {
        double z = em_normal_quantile(p), phi = erfc(-z / sqrt(2)) / 2;

        ck_assert_msg(fabs(phi / p - 1) < 4 * DBL_EPSILON * (1 + z * z), "p = %g: %g", p,
                      phi / p - 1);
        if (p > 0.01) /* 1 - p is rounded: by the slope 1 / pdf of the quantile */
            ck_assert_double_eq_tol(em_normal_quantile(1 - p), -z, 1e-14);
    }
    ck_assert_double_eq(em_normal_quantile(0.5), 0);
}
END_TEST

enum { HALVES = 10, HALF = 300 };

/* The ESS of halves by the definition: all products of all lags; *lag: where the sequence ends. */
static double ess_by_hand(const double x[HALVES][HALF], int64_t *lag)
{
    static double covariance[HALF], rho[HALF];
    double mean[HALVES] = {0}, all = 0, between = 0, tau = -1, n = HALF, s = HALF * HALVES;
    int64_t end = 0;

    for (int h = 0; h < HALVES; h++) {
        for (int i = 0; i < HALF; i++)
            mean[h] += x[h][i] / n;
        all += mean[h] / HALVES;
    }
    for (int h = 0; h < HALVES; h++)
        between += (mean[h] - all) * (mean[h] - all) / (HALVES - 1);
    for (int k = 0; k < HALF; k++) {
        covariance[k] = 0;
        for (int h = 0; h < HALVES; h++)
            for (int i = 0; i + k < HALF; i++)
                covariance[k] += (x[h][i] - mean[h]) * (x[h][i + k] - mean[h]) / s;
    }
    for (int k = 0; k < HALF; k++)
        rho[k] =
            k ? 1 - (covariance[0] * n / (n - 1) - covariance[k]) / (covariance[0] + between) : 1;
    while (end < HALF - 5 && rho[end] + rho[end + 1] > 0)
        end += 2;
    for (int64_t k = 2; k < end; k += 2)
        if (rho[k] + rho[k + 1] > rho[k - 2] + rho[k - 1])
            rho[k] = rho[k + 1] = (rho[k - 2] + rho[k - 1]) / 2;
    for (int64_t k = 0; k < end; k++)
        tau += 2 * rho[k];
    *lag = end;
    return s /
           fmax(rho[end] > 0 || rho[end] + rho[end + 1] >= 0 ? tau + rho[end] : tau, 1 / log10(s));
}

/* Of sequences that end within the lags that are summed directly, at their last ones, and far
 * behind them. Halves are more than a row of lanes. */
START_TEST(ess_is_that_of_all_products)
{
    static const double kept[] = {-0.4, 0, 0.5, 0.9, 0.95, 0.97, 0.98, 0.99};
    static double x[HALVES][HALF];
    int n_direct = 0, n_transformed = 0;
    int64_t state = 7, lag;

    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
        for (int h = 0; h < HALVES; h++)
            for (int i = 0; i < HALF; i++) {
                const double before = i ? x[h][i - 1] : h % 2 ? x[h - 1][HALF - 1] : 0;
                x[h][i] = kept[k] * before + next_uniform(&state) - 0.5;
            }
        em_diagnosis d;
        ck_assert_int_eq(em_diagnose(diag, HALVES / 2, 2 * HALF, x[0], &d), EM_OK);
        const double size = ess_by_hand(x, &lag), found = d.sd / d.mcse_mean;
        ck_assert_double_eq_tol(found * found / size, 1, 1e-10);
        n_direct += lag < 60;
        n_transformed += lag > 70;
    }
    ck_assert_int_gt(n_direct, 2);
    ck_assert_int_gt(n_transformed, 1);
}
END_TEST

/* A transform of a unit pulse at k is exp(-2 pi i j k / length), and the way back returns it: in
 * every lane, in which the pulses differ. */
START_TEST(transform_is_inverted)
{
    enum { LENGTH = 512 }; /* more than fits a block */
    double cosine[LENGTH], sine[LENGTH];
    _Alignas(64) em_fft_lanes re[LENGTH] = {0};
    _Alignas(64) em_fft_lanes im[LENGTH] = {0};

    em_fft_twiddles(LENGTH, cosine, sine);
    for (int lane = 0; lane < EM_FFT_LANES; lane++)
        re[lane][lane] = 1;
    em_fft_forward(LENGTH, cosine, sine, re, im);
    for (int i = 0; i < LENGTH; i++) {
        int j = 0; /* i with its bits reversed */

        for (int bit = 1; bit < LENGTH; bit *= 2)
            j = 2 * j + (i & bit ? 1 : 0);
        for (int lane = 0; lane < EM_FFT_LANES; lane++) {
            ck_assert_double_eq_tol(re[i][lane], cos(2 * M_PI * lane * j / LENGTH), 1e-13);
            ck_assert_double_eq_tol(im[i][lane], -sin(2 * M_PI * lane * j / LENGTH), 1e-13);
        }
    }
    em_fft_backward(LENGTH, cosine, sine, re, im);
    for (int i = 0; i < LENGTH; i++)
        for (int lane = 0; lane < EM_FFT_LANES; lane++)
            ck_assert_double_eq_tol(re[i][lane], i == lane ? LENGTH : 0, 1e-12);
}
END_TEST

/* Energies 0, 1, 3: changes 1 + 4 over deviations 16/9 + 1/9 + 25/9. */
START_TEST(ebfmi_by_hand)
{
    double energy[] = {0, 1, 3};

    ck_assert_double_eq_tol(em_ebfmi(3, energy), 5.0 / (42.0 / 9.0), 1e-15);
    ck_assert(isnan(em_ebfmi(1, energy)));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("diag");
    TCase *posterior = tcase_create("posterior"), *own = tcase_create("own");

    suite_add_tcase(suite, posterior);
    suite_add_tcase(suite, own);
    tcase_add_checked_fixture(posterior, start, stop);
    tcase_add_checked_fixture(own, start, stop);
    tcase_add_loop_test(posterior, equals_posterior, 0, N_GOLDEN);
    tcase_add_test(own, work_space_carries_over);
    tcase_add_test(own, allocates_nothing_when_grown);
    tcase_add_test(own, constants_are_not_worked_on);
    tcase_add_test(own, convergence_alone_is_the_same);
    tcase_add_test(own, stuck_chains_have_infinite_r_hat);
    tcase_add_test(own, scale_does_not_matter);
    tcase_add_test(own, visits_bound_the_ess);
    tcase_add_test(own, neighbouring_visits_may_be_alike);
    tcase_add_test(own, one_visit_a_chain_bounds_nothing);
    tcase_add_test(own, visits_of_one_draw_bound_nothing_more);
    tcase_add_test(own, what_is_known_is_not_computed_again);
    tcase_add_test(own, many_are_known);
    tcase_add_test(own, few_draws_are_undefined);
    tcase_add_test(own, quantiles_interpolate);
    tcase_add_test(own, normal_quantile_inverts_erfc);
    tcase_add_test(own, ess_is_that_of_all_products);
    tcase_add_test(own, transform_is_inverted);
    tcase_add_test(own, ebfmi_by_hand);
    return run_suite(suite, CK_FORK_GETENV);
}
