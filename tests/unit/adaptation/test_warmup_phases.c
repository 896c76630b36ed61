/* The pure parts of a warmup schedule: its windows, outlying chains, and when longer trajectories
 * pay. */
#include "adaptation/adaptation_internal.h"
#include "adaptation/schedule/outliers.h"
#include "adaptation/schedule/warmup_schedule.h"
#include "adaptation/trajectory/trajectory_criterion.h"
#include "adaptation/trajectory/tree_depth.h"
#include "math/rng.h"
#include "support/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const em_trajectory learned = {.kind = EM_TRAJECTORY_TIME, .time = NAN, .jitter = 0.2};
static const em_trajectory u_turn = {.kind = EM_TRAJECTORY_U_TURN};

static em_warmup_plan auto_plan(void)
{
    return em_warmup_plan_create(INT64_MIN, &learned);
}

/* ---- step sizes ---- */

/* What was learned earlier, or found at the end of a stage, is taken as it is. Its logarithm would
 * not do: some numbers do not come back from it. */
START_TEST(a_step_size_that_nothing_moved_is_what_it_was)
{
    em_dual_averaging averaging = {.target = 0.8};
    int stuck = 0;

    for (int k = 1; k <= 1000; k++) {
        const double step_size = k / 333.0;
        em_dual_averaging_start(&averaging, step_size, 2);
        ck_assert(em_dual_averaging_final(&averaging) == step_size);
        stuck += exp(log(step_size)) != step_size;
    }
    ck_assert_int_gt(stuck, 0);
}
END_TEST

/* Stan's: the first update forgets where it began, but for where it is drawn to. */
START_TEST(a_step_size_follows_the_acceptance)
{
    em_dual_averaging averaging = {.target = 0.8};

    em_dual_averaging_start(&averaging, 0.5, 10);
    ck_assert_double_eq_tol(em_dual_averaging_update(&averaging, 0.8), 5, 1e-14);
    ck_assert_double_eq_tol(em_dual_averaging_final(&averaging), 5, 1e-14);
    ck_assert_double_lt(em_dual_averaging_update(&averaging, 0.1), 5);
    ck_assert_double_lt(em_dual_averaging_final(&averaging), 5);
}
END_TEST

/* ---- windows ---- */

START_TEST(windows_are_those_of_the_recipe)
{
    static const int64_t ends[] = {10,  14,  19,  26,  36,  49,  67, 91,
                                   123, 167, 226, 306, 414, 559, 750};
    const em_warmup_plan plan = auto_plan();
    int64_t end = 0;

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        end = em_warmup_next_window(&plan, end);
        ck_assert_int_eq(end, ends[i]);
    }
    ck_assert_int_eq(plan.warmup, 1150);
}
END_TEST

/* However long warmup is: windows grow to the end of the initial phase, each looks back on whole
 * segments, and there is room for those that are alive. */
START_TEST(windows_look_back_on_whole_segments)
{
    for (int64_t warmup = 1; warmup < 3000; warmup += warmup < 400 ? 1 : 97) {
        const em_warmup_plan plan = em_warmup_plan_create(warmup, _i ? &learned : &u_turn);
        int64_t from[EM_MOST_SEGMENTS] = {0}, last = 0, window = em_warmup_next_window(&plan, 0);

        ck_assert_int_le(plan.initial + plan.trial, warmup);
        for (int64_t t = 0; t < plan.initial; t++) {
            if (t > 0 && em_warmup_splits_window(&plan, t)) {
                ck_assert_int_lt(++last, EM_MOST_SEGMENTS);
                from[last] = t;
            }
            if (t + 1 < window)
                continue;
            bool begins = false;
            for (int64_t k = 0; k <= last; k++)
                begins |= from[k] == em_warmup_window_begin(t + 1);
            ck_assert_msg(begins, "warmup %lld: window %lld begins within a segment",
                          (long long)warmup, (long long)(t + 1));
            window = em_warmup_next_window(&plan, t + 1);
            int64_t dropped = 0;
            while (dropped < last && from[dropped] < em_warmup_window_begin(window))
                dropped++;
            for (int64_t k = dropped; k <= last; k++)
                from[k - dropped] = from[k];
            last -= dropped;
        }
        ck_assert_int_eq(window, plan.initial);
    }
}
END_TEST

START_TEST(a_given_warmup_is_kept)
{
    const em_warmup_plan none = em_warmup_plan_create(0, &learned);
    const em_warmup_plan usual = em_warmup_plan_create(300, &learned);
    em_trajectory longer;

    ck_assert_int_eq(none.initial + none.trial, 0);
    ck_assert_int_eq(usual.initial, 150);
    ck_assert_int_eq(usual.trial, 50);
    ck_assert(em_warmup_longer_trajectory(&usual, &(em_trajectory){.time = 2}, 250, &longer));
    ck_assert(!em_warmup_longer_trajectory(&usual, &(em_trajectory){.time = 2}, 251, &longer));
    ck_assert(!em_warmup_longer_trajectory(&usual, &(em_trajectory){.time = 6}, 200, &longer));
}
END_TEST

/* ---- the table of phases ---- */

/* Phase _i has a name of its own, and the phases that follow it end with sampling. */
START_TEST(every_phase_leads_to_sampling)
{
    em_phase_id phase = (em_phase_id)_i;

    for (int k = 0; k <= EM_PHASE_LAST_BUFFER; k++)
        ck_assert(k == _i || strcmp(em_phase_name(k), em_phase_name(_i)) != 0);
    for (int k = 0; k < 3; k++)
        phase = em_phases[phase].follower;
    ck_assert_int_eq(phase, EM_PHASE_SAMPLING);
    ck_assert(em_phases[_i].update == NULL || em_phases[_i].learns);
}
END_TEST

/* ---- how deep trees of many chains may grow ---- */

/* 1000 trees, of which 300 want 3 doublings and 200 more than that, with the limit that they had.
 */
static void trees(int most, double *count)
{
    static const int wanted[] = {2, 3, 4, 6}, number[] = {500, 300, 120, 80};

    memset(count, 0, EM_DEPTHS * sizeof *count);
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < number[k]; i++)
            em_tree_depth_observe(wanted[k] < most ? wanted[k] : most, wanted[k] > most, count);
}

START_TEST(few_of_many_trees_are_ended)
{
    double count[EM_DEPTHS];

    trees(6, count);
    ck_assert_int_eq(em_tree_depth_limit(count, 1), 3);
    ck_assert_int_eq(em_tree_depth_limit(count, 1.3), 3);
    ck_assert_int_eq(em_tree_depth_limit(count, 2), 4);
    ck_assert_int_eq(em_tree_depth_limit(count, 0.25), 1);
    ck_assert_int_eq(em_tree_depth_limit(count, 1e-3), 1);
    trees(3, count);
    ck_assert_int_eq(em_tree_depth_limit(count, 1), 3);
}
END_TEST

/* However far they are from where most would end, the limit follows: a doubling in each adaptation
 * update. */
START_TEST(a_limit_that_is_too_tight_is_raised)
{
    double count[EM_DEPTHS];

    for (int most = 1; most < 3; most++) {
        trees(most, count);
        ck_assert_int_eq(em_tree_depth_limit(count, 1), most + 1);
    }
    memset(count, 0, sizeof count);
    ck_assert_int_eq(em_tree_depth_limit(count, 1), 0);
    em_tree_depth_observe(24, true, count);
    ck_assert_int_eq(em_tree_depth_limit(count, 1), 0);
    ck_assert_int_eq(em_tree_depth_limit(count, INFINITY), 0);
    ck_assert_int_eq(em_tree_depth_limit(count, NAN), 0);
}
END_TEST

/* ---- outlying chains ---- */

enum { N = 6, LENGTH = 40 };

/* Log densities of chains in the law of dimension 8, N(-4, 2^2) or so; but for chain 1. */
static void fill_windows(double level, double spread, em_log_density_window *out)
{
    for (int64_t c = 0; c < N; c++) {
        _Alignas(64) double x[LENGTH];
        const em_stream stream = {1, (uint64_t)c, 0, EM_RNG_TEST};
        em_normals(&stream, LENGTH, x);
        for (int t = 0; t < LENGTH; t++)
            x[t] = c == 1 ? level + spread * x[t] : -4 + 2 * x[t];
        out[c] = em_log_density_window_of(LENGTH, x);
    }
}

START_TEST(a_window_has_its_mean_and_spread)
{
    const double x[] = {1, 2, 3, 4, 10};
    const em_log_density_window s = em_log_density_window_of(5, x);

    ck_assert_double_eq_tol(s.mean, 4, 1e-12);
    ck_assert_double_eq_tol(s.early, 1.5, 1e-12);
    ck_assert_double_eq_tol(s.late, 17.0 / 3, 1e-12);
    ck_assert_double_eq_tol(s.variance, 10, 1e-12);
}
END_TEST

/* In 8 dimensions the limit is 16 below. */
START_TEST(chains_left_behind_are_outlying)
{
    em_log_density_window s[N];
    double scratch[N];
    bool outlying[N];

    fill_windows(-4, 2, s);
    ck_assert_int_eq(em_find_outlying_chains(N, s, 8, scratch, outlying), 0);
    ck_assert(em_initial_phase_has_ended(N, s, outlying, 0));
    fill_windows(-15, 2, s);
    ck_assert_int_eq(em_find_outlying_chains(N, s, 8, scratch, outlying), 0);
    ck_assert(!em_initial_phase_has_ended(N, s, outlying, 0)); /* too far apart for one law */
    fill_windows(-40, 2, s);
    ck_assert_int_eq(em_find_outlying_chains(N, s, 8, scratch, outlying), 1);
    ck_assert(outlying[1] && !em_initial_phase_has_ended(N, s, outlying, 0));
    fill_windows(-4, 0, s);
    ck_assert_int_eq(em_find_outlying_chains(N, s, 8, scratch, outlying), 1); /* it does not move */
    ck_assert(outlying[1]);
    fill_windows(NAN, 0, s);
    ck_assert_int_eq(em_find_outlying_chains(N, s, 8, scratch, outlying), 1);
}
END_TEST

/* A transient ends where a chain stays at the log densities of the others: -4, with a limit of -20.
 */
START_TEST(a_transient_is_told_from_an_excursion)
{
    double x[LENGTH];

    for (int t = 0; t < LENGTH; t++)
        x[t] = t < 12 ? -900 + 60 * t : -4;
    ck_assert_int_eq(em_transient_length(LENGTH, x, -20), 12);
    x[3] = x[20] = NAN; /* not kept */
    ck_assert_int_eq(em_transient_length(LENGTH, x, -20), 12);
    ck_assert_int_eq(em_transient_length(16, x, -20), 0); /* too few draws since */
    ck_assert_int_eq(em_transient_length(17, x, -20), 12);
    for (int t = 0; t < LENGTH; t++)
        x[t] = t == 12 ? -21 : -4; /* one low draw of a chain that is there */
    ck_assert_int_eq(em_transient_length(LENGTH, x, -20), 0);
    for (int t = 0; t < LENGTH; t++)
        x[t] = -900; /* it has not come */
    ck_assert_int_eq(em_transient_length(LENGTH, x, -20), 0);
}
END_TEST

/* Sorting is all that takes more than one look at each chain: it is done here, by comparisons that
 * are counted, in place of the C library's. */
static int64_t n_compared;

static int compare_counted(const void *a, const void *b, void *compare)
{
    n_compared++;
    return (*(int (**)(const void *, const void *))compare)(a, b);
}

void qsort(void *x, size_t n, size_t size, int (*compare)(const void *, const void *))
{
    qsort_r(x, n, size, compare_counted, &compare);
}

START_TEST(a_hundred_thousand_chains_are_sorted_once)
{
    enum { MANY = 100000, LOG2_MANY = 17 };
    em_log_density_window *s = calloc(MANY, sizeof *s);
    double *scratch = calloc(MANY, sizeof *scratch);
    bool *outlying = calloc(MANY, sizeof *outlying);

    ck_assert(s && scratch && outlying);
    for (int64_t c = 0; c < MANY; c++)
        s[c] = (em_log_density_window){
            .length = 20, .mean = (double)(c * 7919 % MANY) / 1000, .variance = 1};
    n_compared = 0;
    /* Ranks 50000 to 99999 are the better half, whose median is 75; 16 less is the limit. */
    ck_assert_int_eq(em_find_outlying_chains(MANY, s, 8, scratch, outlying), 59000);
    ck_assert_int_ge(n_compared, MANY);
    ck_assert_int_le(n_compared, (int64_t)MANY * LOG2_MANY);
    free(s);
    free(scratch);
    free(outlying);
}
END_TEST

START_TEST(not_all_chains_are_outlying)
{
    em_log_density_window still[N] = {{0}}, stuck[N];
    double scratch[N];
    bool outlying[N];

    for (int c = 0; c < N; c++) {
        still[c].length = 20;
        stuck[c] = (em_log_density_window){.length = 20, .mean = NAN};
    }
    ck_assert_int_eq(em_find_outlying_chains(N, still, 8, scratch, outlying), 0);
    ck_assert_int_eq(em_find_outlying_chains(N, stuck, 8, scratch, outlying), 0);
    ck_assert_int_eq(em_find_outlying_chains(1, still, 8, scratch, outlying), 0);
    ck_assert(!em_initial_phase_has_ended(N, still, outlying, 0));
}
END_TEST

START_TEST(a_trend_is_not_stationary)
{
    em_log_density_window s[N];
    const bool outlying[N] = {false};

    fill_windows(-4, 2, s);
    for (int c = 0; c < N; c++) {
        s[c].early -= 1;
        s[c].late += 1;
    }
    ck_assert(!em_initial_phase_has_ended(N, s, outlying, 0));
}
END_TEST

/* Of 64 chains 3 have just been moved to where others stand, and 1 is left behind. */
START_TEST(few_of_many_chains_hold_up_nobody)
{
    enum { MANY = 64 };
    em_log_density_window s[MANY];
    bool outlying[MANY] = {false};

    for (int c = 0; c < MANY; c++)
        s[c] = (em_log_density_window){
            .length = c < 3 ? 4 : 19, .mean = c < 4 ? -300 : 0, .variance = 1};
    outlying[3] = true;
    ck_assert(em_initial_phase_has_ended(MANY, s, outlying, 4));
    ck_assert(!em_initial_phase_has_ended(MANY, s, outlying, 3));
    ck_assert(!em_initial_phase_has_ended(MANY, s, outlying, 0));
    outlying[3] = false; /* nothing is said against it: it counts */
    ck_assert(!em_initial_phase_has_ended(MANY, s, outlying, 4));
}
END_TEST

/* ---- the ladder ---- */

/* Two coordinates, far from the centre, that are AR(1) of r = 0.9 and -0.4, in 8 chains: each
 * estimate is within 4 of its standard errors, 0.02 or less. */
START_TEST(autocorrelations_are_found)
{
    enum { CHAINS = 8, STEPS = 400, DIM = 2 };
    static const double rho[DIM] = {0.9, -0.4};
    double pooled[1 + 5 * DIM] = {0}, r[DIM], n_steps;

    ck_assert_int_eq(em_lag_size(DIM), 1 + 5 * DIM);
    for (int c = 0; c < CHAINS; c++) {
        _Alignas(64) static double z[DIM * STEPS + 8];
        const em_stream stream = {(uint64_t)_i + 1, (uint64_t)c, 0, EM_RNG_TEST};
        double sums[1 + 5 * DIM] = {0}, x[DIM], y[DIM];
        em_normals(&stream, DIM * STEPS, z);
        for (int t = 0; t < STEPS; t++) {
            for (int i = 0; i < DIM; i++) {
                x[i] = t == 0 ? z[i] : rho[i] * x[i] + sqrt(1 - rho[i] * rho[i]) * z[DIM * t + i];
                y[i] = 100 + x[i];
            }
            em_lag_observe(DIM, y, 3, t, sums);
        }
        for (int k = 0; k < 1 + 5 * DIM; k++)
            pooled[k] += sums[k];
    }
    em_lag_estimate(DIM, CHAINS, STEPS, pooled, r, &n_steps);
    ck_assert_double_eq(n_steps, 3);
    ck_assert_double_eq_tol(r[0], rho[0], 0.08);
    ck_assert_double_eq_tol(r[1], rho[1], 0.08);
    ck_assert(em_lag_is_long(DIM, r));
    ck_assert(!em_lag_is_long(1, r + 1));
}
END_TEST

START_TEST(a_time_of_too_many_steps_is_cut)
{
    const em_trajectory two = em_trajectory_of_time(2, 0),
                        tree = em_trajectory_of_time(INFINITY, 0);

    ck_assert(!em_trajectory_is_cut(&two, 0.02)); /* 100 steps */
    ck_assert(em_trajectory_is_cut(&two, 0.0199));
    ck_assert(!em_trajectory_is_cut(&tree, 0.0199));
}
END_TEST

START_TEST(longer_trajectories_are_kept_where_they_pay)
{
    double scratch[4];
    const double slow[] = {0.9, 0}, faster[] = {0.7, 0}, same[] = {0.9, 0};

    ck_assert(em_trajectory_is_better(2, slow, 3, faster, 5, scratch)); /* 3 times faster for 1.7 */
    ck_assert(!em_trajectory_is_better(2, slow, 3, same, 5, scratch));  /* as slow */
    ck_assert(
        em_trajectory_is_better(2, slow, 3, same, 3.3, scratch)); /* nearly as good is enough */
    ck_assert(!em_trajectory_is_better(2, slow, 3, same, 3.6, scratch));
}
END_TEST

/* Leapfrog steps for 4, 90 and 400 normal coordinates with an acceptance rate of 0.8 are 0.94, 0.46
 * and 0.32 long. */
START_TEST(several_stages_are_kept_where_they_pay)
{
    ck_assert(em_multistage_pays(4, 0.8, 1.1));
    ck_assert(!em_multistage_pays(4, 0.8, 1.0));
    ck_assert(em_multistage_pays(90, 0.8, 0.70));
    ck_assert(!em_multistage_pays(90, 0.8, 0.67));
    ck_assert(em_multistage_pays(400, 0.8, 0.50));
    ck_assert(!em_multistage_pays(400, 0.8, 0.46));
    ck_assert(em_multistage_pays(400, 0.9, 0.36)); /* leapfrog: 0.22 */
}
END_TEST

int main(void)
{
    TCase *all = tcase_create("warmup_schedule");

    tcase_add_test(all, a_step_size_that_nothing_moved_is_what_it_was);
    tcase_add_test(all, a_step_size_follows_the_acceptance);
    tcase_add_test(all, windows_are_those_of_the_recipe);
    tcase_add_loop_test(all, windows_look_back_on_whole_segments, 0, 2);
    tcase_add_loop_test(all, every_phase_leads_to_sampling, 0, EM_PHASE_LAST_BUFFER + 1);
    tcase_add_test(all, a_given_warmup_is_kept);
    tcase_add_test(all, few_of_many_trees_are_ended);
    tcase_add_test(all, a_limit_that_is_too_tight_is_raised);
    tcase_add_test(all, a_window_has_its_mean_and_spread);
    tcase_add_test(all, chains_left_behind_are_outlying);
    tcase_add_test(all, a_transient_is_told_from_an_excursion);
    tcase_add_test(all, a_hundred_thousand_chains_are_sorted_once);
    tcase_add_test(all, not_all_chains_are_outlying);
    tcase_add_test(all, a_trend_is_not_stationary);
    tcase_add_test(all, few_of_many_chains_hold_up_nobody);
    tcase_add_loop_test(all, autocorrelations_are_found, 0, 4);
    tcase_add_test(all, a_time_of_too_many_steps_is_cut);
    tcase_add_test(all, longer_trajectories_are_kept_where_they_pay);
    tcase_add_test(all, several_stages_are_kept_where_they_pay);
    return run_case(all, CK_FORK);
}
