/* Rungs and their spacing, the law of swaps on a ladder that is small enough to be written down,
 * and the evidence with its error. */
#include "math/rng.h"
#include "support/tap.h"
#include "tempering/ladder.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- spacing */

START_TEST(two_legs_meet_at_the_target)
{
    const em_ladder ladder = em_ladder_create(2, 4);

    ck_assert_int_eq(ladder.n_rung, 7);
    ck_assert_int_eq(ladder.target, 3);
    ck_assert(ladder.beta[0] == 0 && ladder.beta[3] == 1 && ladder.beta[6] == 0);
    for (int64_t k = 0; k < 3; k++) {
        ck_assert(ladder.beta[k] == ladder.beta[6 - k]);
        ck_assert_int_eq(em_ladder_leg_of_pair(&ladder, k), EM_LEG_A);
        ck_assert_int_eq(em_ladder_leg_of_pair(&ladder, 3 + k), EM_LEG_B);
    }
    ck_assert_int_eq(em_ladder_create(1, 2).n_rung, 2);
}
END_TEST

/* As many rungs as the rejection rates ask for, and closer where these are higher. */
START_TEST(rungs_go_where_swaps_are_rejected)
{
    const em_ladder ladder = em_ladder_create(2, 4);
    const double rejection[6] = {0.9, 0.3, 0.3, 0.1, 0.1, 0.1};
    int64_t near[2 * EM_MOST_LEG_RUNGS];
    em_ladder out;

    em_ladder_respace(&ladder, 0, rejection, &out, near);
    ck_assert_int_eq(out.target + 1, 4); /* ceil(2 x 1.5) + 1 */
    ck_assert_int_eq(out.n_rung - out.target, 3);
    /* by another program, from the quantiles 1.645, 0.385 and 0.126 of these rates */
    ck_assert(fabs(out.beta[1] - 0.06806674095586579) < 1e-12);
    ck_assert(fabs(out.beta[2] - 0.31407027924238495) < 1e-12);
    ck_assert(fabs(out.beta[4] - 0.49165172169109717) < 1e-12);
    for (int64_t k = 0; k < out.n_rung; k++) {
        ck_assert(near[k] >= 0 && near[k] < ladder.n_rung);
        ck_assert(fabs(ladder.beta[near[k]] - out.beta[k]) <= 1. / 6 + 1e-12);
    }
    em_ladder_respace(&ladder, 9, rejection, &out, near);
    ck_assert_int_eq(out.n_rung, 17);
    for (int64_t k = 0; k + 1 < 9; k++)
        ck_assert(out.beta[k] < out.beta[k + 1] && out.beta[17 - 1 - k] < out.beta[17 - 2 - k]);
}
END_TEST

enum { SWAPS = 2000, DIM = 3 };

/* Rejection rates between N(0, 10^2) and N(0, sd^2) of three dimensions, from independent draws. */
static void reject(const em_ladder *ladder, double sd, uint64_t round, double *rejection)
{
    const double by = 1 / (sd * sd) - 0.01;
    _Alignas(64) static double z[2][DIM * SWAPS];

    for (int64_t k = 0; k + 1 < ladder->n_rung; k++) {
        rejection[k] = 0;
        for (int side = 0; side < 2; side++) {
            const em_stream stream = {round, (uint64_t)k, (uint64_t)side, EM_RNG_TEST};
            em_normals(&stream, DIM * SWAPS, z[side]);
        }
        for (int64_t i = 0; i < SWAPS; i++) {
            double w[2] = {0};
            for (int side = 0; side < 2; side++)
                for (int64_t d = 0; d < DIM; d++)
                    w[side] -= z[side][DIM * i + d] * z[side][DIM * i + d] * by / 2 /
                               (0.01 + ladder->beta[k + side] * by);
            const double ratio =
                em_swap_log_ratio(ladder->beta[k], w[0], ladder->beta[k + 1], w[1]);
            rejection[k] += (1 - fmin(1, exp(ratio))) / SWAPS;
        }
    }
}

/* The largest rejection rate after so many rounds. */
static double highest_rate(double sd, int n_round)
{
    em_ladder ladder = em_ladder_create(1, 15), next;
    double rejection[2 * EM_MOST_LEG_RUNGS], most = 0;
    int64_t near[2 * EM_MOST_LEG_RUNGS];

    for (int r = 0; r < n_round; r++) {
        reject(&ladder, sd, (uint64_t)r, rejection);
        em_ladder_respace(&ladder, 0, rejection, &next, near);
        ladder = next;
    }
    reject(&ladder, sd, (uint64_t)n_round, rejection);
    for (int64_t k = 0; k + 1 < ladder.n_rung; k++)
        most = fmax(most, rejection[k]);
    return most;
}

/* Also where the first rungs must be at 1e-10, as a posterior is far narrower than its reference.
 */
START_TEST(few_rounds_space_the_rungs_evenly)
{
    ck_assert_msg(highest_rate(1, 4) < 0.65, "sd 1: %g", highest_rate(1, 4));
    ck_assert_msg(highest_rate(1e-2, 5) < 0.65, "sd 1e-2: %g", highest_rate(1e-2, 5));
    ck_assert_msg(highest_rate(1e-4, 6) < 0.65, "sd 1e-4: %g", highest_rate(1e-4, 6));
    ck_assert(highest_rate(1e-4, 1) > 0.9);
}
END_TEST

/* ---------------------------------------------------------------- swaps */

enum { STATES = 3, RUNGS = 3, JOINT = 27 }; /* a state on each of three rungs */

static const double log_p[STATES] = {0.3, -2, -INFINITY}, log_r[STATES] = {-1, -0.5, -1.5};

static double log_pi(double beta, int state)
{
    return (1 - beta) * log_r[state] + (beta > 0 ? beta * log_p[state] : 0);
}

/* The largest change that swaps of rungs k and k + 1 make to the product of the rungs' laws. */
static double change(const em_ladder *ladder, int k, double sign)
{
    double before[JOINT], after[JOINT] = {0}, most = 0;
    const int power[RUNGS] = {1, 3, 9};

    for (int j = 0; j < JOINT; j++) {
        before[j] = 1;
        for (int i = 0; i < RUNGS; i++)
            before[j] *= exp(log_pi(ladder->beta[i], j / power[i] % STATES));
    }
    for (int j = 0; j < JOINT; j++) {
        const int a = j / power[k] % STATES, b = j / power[k + 1] % STATES;
        const int swapped = j + (b - a) * power[k] + (a - b) * power[k + 1];
        const double ratio = em_swap_log_ratio(ladder->beta[k], log_p[a] - log_r[a],
                                               ladder->beta[k + 1], log_p[b] - log_r[b]);
        const double accept = fmin(1, exp(sign * ratio));
        after[j] += before[j] * (1 - accept);
        after[swapped] += before[j] * accept;
    }
    for (int j = 0; j < JOINT; j++)
        most = fmax(most, fabs(after[j] - before[j]));
    return most;
}

START_TEST(swaps_leave_the_laws_of_all_rungs)
{
    const em_ladder ladder = em_ladder_create(1, RUNGS);

    for (int k = 0; k + 1 < RUNGS; k++) {
        ck_assert(change(&ladder, k, 1) < 1e-15);
        ck_assert(change(&ladder, k, -1) > 1e-3); /* the ratio upside down */
    }
}
END_TEST

/* ---------------------------------------------------------------- evidence */

enum { UNITS = 32, DRAWS = 100, REPLICATES = 200 };

/* How the draws of a test are made: kept, of each draw what the one before was; each, parts that
 * follow one another as the error takes it; error_of_sign, 1 or that of a broken twin. */
typedef struct maker {
    double kept;
    int64_t each;
    double error_of_sign;
} maker;

/* Draws of each rung between N(0, 3^2) and exp(offset) N(1, 1), which are normal; an autoregression
 * of order 1. */
static em_log_evidence estimate(const em_ladder *ladder, double offset, uint64_t replicate,
                                const maker *how)
{
    em_bridge bridges[UNITS][4] = {{{{0}, {0}}}};
    double influence[UNITS];
    _Alignas(64) double z[8 * ((DRAWS * UNITS + 7) / 8)];

    for (int64_t k = 0; k < ladder->n_rung; k++) {
        const double b = ladder->beta[k], precision = (1 - b) / 9 + b, mean = b / precision;
        const em_stream stream = {replicate, (uint64_t)k, 0, EM_RNG_TEST};
        em_normals(&stream, DRAWS * UNITS, z);
        for (int64_t i = 1; i < DRAWS * UNITS; i++)
            z[i] = how->kept * z[i - 1] + sqrt(1 - how->kept * how->kept) * z[i];
        for (int64_t i = 0; i < DRAWS * UNITS; i++) {
            const double x = mean + z[i] / sqrt(precision);
            const double w = offset - (x - 1) * (x - 1) / 2 + x * x / 18 + log(3);
            for (int64_t pair = k - 1; pair <= k; pair++) {
                if (pair < 0 || pair >= ladder->n_rung - 1)
                    continue;
                em_bridge *to = &bridges[i / DRAWS][pair];
                const double db = 0.5 * (ladder->beta[pair + 1] - ladder->beta[pair]);
                em_log_mean_add((pair == k ? db : -db * how->error_of_sign) * w,
                                pair == k ? &to->low : &to->high);
            }
        }
    }
    return em_ladder_evidence(ladder, EM_LEG_A, UNITS, how->each, &bridges[0][0], influence);
}

/* Mean and standard deviation of z scores over replicates. */
static void z_scores(const maker *how, double *mean, double *sd)
{
    const em_ladder ladder = em_ladder_create(1, 5);
    double sum = 0, square = 0;

    for (uint64_t r = 0; r < REPLICATES; r++) {
        const em_log_evidence found = estimate(&ladder, -700, r, how);
        const double z = (found.value + 700) / found.error;
        sum += z / REPLICATES;
        square += z * z / REPLICATES;
    }
    *mean = sum;
    *sd = sqrt(square - sum * sum);
}

/* They are 0 and 1. */
START_TEST(evidence_and_its_error_are_right)
{
    double mean, sd;

    z_scores(&(maker){0, 1, 1}, &mean, &sd);
    ck_assert_msg(fabs(mean) < 4 / sqrt(REPLICATES) && sd > 0.8 && sd < 1.25,
                  "z scores: mean %g, sd %g", mean, sd);
    z_scores(&(maker){0, 1, 0.5}, &mean, &sd); /* the broken twin */
    ck_assert(fabs(mean) > 10);
}
END_TEST

/* Also where draws keep their place for about as long as a part has scans: 1 / (1 - 0.98) = 50 to
 * 100. The errors of parts that are taken for independent are smaller, and too small. */
START_TEST(parts_may_depend_on_each_other)
{
    double mean, sd, sd_of_independent;

    z_scores(&(maker){0.98, UNITS, 1}, &mean, &sd);
    z_scores(&(maker){0.98, 1, 1}, &mean, &sd_of_independent);
    ck_assert_msg(sd > 0.8 && sd < 1.25 && sd < 0.95 * sd_of_independent,
                  "z scores: sd %g, of parts taken for independent %g", sd, sd_of_independent);
}
END_TEST

START_TEST(log_means_do_not_overflow_and_merge)
{
    em_log_mean a = {0}, b = {0}, none = {0};

    ck_assert(isnan(em_log_mean_value(&none)));
    em_log_mean_add(2000, &a);
    em_log_mean_add(-INFINITY, &a);
    em_log_mean_add(1999, &b);
    em_log_mean_merge(&b, &a);
    em_log_mean_merge(&none, &a);
    ck_assert(fabs(em_log_mean_value(&a) - (2000 + log((1 + exp(-1)) / 3))) < 1e-12);
}
END_TEST

/* The combination is that of the better leg where the other says little, and its error is not below
 * that of independent legs when both are the same. */
START_TEST(legs_combine)
{
    double a[UNITS], b[UNITS];
    const em_stream stream = {1, 0, 0, EM_RNG_TEST};

    em_uniforms(&stream, 0, UNITS, a);
    double mean = 0, square = 0;
    for (int i = 0; i < UNITS; i++)
        mean += a[i] / UNITS;
    for (int i = 0; i < UNITS; i++) {
        b[i] = a[i] -= mean; /* influences have a mean of 0 */
        square += a[i] * a[i];
    }
    const double error = sqrt(square / (UNITS * (UNITS - 1)));
    const em_log_evidence same[EM_MOST_LEGS] = {{3, error}, {3, error}};
    double *const influence[EM_MOST_LEGS] = {a, b};
    const em_log_evidence both = em_ladder_combine(UNITS, 1, same, influence);
    ck_assert(fabs(both.value - 3) < 1e-12 && fabs(both.error - error) < 1e-12);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("ladder");

    tcase_add_test(tests, two_legs_meet_at_the_target);
    tcase_add_test(tests, rungs_go_where_swaps_are_rejected);
    tcase_add_test(tests, few_rounds_space_the_rungs_evenly);
    tcase_add_test(tests, swaps_leave_the_laws_of_all_rungs);
    tcase_add_test(tests, evidence_and_its_error_are_right);
    tcase_add_test(tests, parts_may_depend_on_each_other);
    tcase_add_test(tests, log_means_do_not_overflow_and_merge);
    tcase_add_test(tests, legs_combine);
    return run_case(tests, CK_FORK);
}
