/* Chains in different modes, chains that stand still, numbers that grow, and draws that gather. */
#include "base/memory.h"
#include "diagnostics/diag.h"
#include "diagnostics/divergence_clustering.h"
#include "diagnostics/growth.h"
#include "diagnostics/modes.h"
#include "math/rng.h"
#include "support/tap.h"

#include <math.h>
#include <string.h>

enum { CHAINS = 9, DRAWS = 200 };

/* N(0, 1), but for the first chains, which are that far off. */
static void draw(uint64_t seed, int n_off, double off, double draws[CHAINS][DRAWS])
{
    for (int c = 0; c < CHAINS; c++) {
        const em_stream stream = {seed, (uint64_t)c, 0, EM_RNG_TEST};
        _Alignas(64) double z[DRAWS];
        em_normals(&stream, DRAWS, z);
        for (int i = 0; i < DRAWS; i++)
            draws[c][i] = z[i] + (c < n_off ? off + 0.5 * (n_off - c) : 0);
    }
}

/* The modes by n_number numbers, [n_number][n_chain][n_draw]. */
static em_modes modes_of(int64_t n_number, int64_t n_chain, int64_t n_draw, const double *draws)
{
    em_mode_finder *finder;
    em_modes modes;

    ck_assert_int_eq(em_mode_finder_create(n_chain, n_draw, &finder), EM_OK);
    for (int64_t i = 0; i < n_number; i++)
        em_mode_finder_examine(finder, draws + i * n_chain * n_draw);
    ck_assert_int_eq(em_mode_finder_count(finder, &modes), EM_OK);
    em_release_owner(&finder);
    return modes;
}

enum { MOST_CHAINS = 16, MOST_DRAWS = 1000 };

/* Chains of an autoregressive series N(centre, 1). */
static void draw_series(uint64_t seed, int64_t n_chain, int64_t n_draw, double rho,
                        const double *centre, double *draws)
{
    _Alignas(64) static double z[MOST_DRAWS + 8];

    for (int64_t c = 0; c < n_chain; c++) {
        const em_stream stream = {seed, (uint64_t)c, 1, EM_RNG_TEST};
        em_normals(&stream, n_draw + 8, z);
        double x = z[n_draw];
        for (int64_t i = 0; i < n_draw; i++) {
            x = rho * x + sqrt(1 - rho * rho) * z[i];
            draws[c * n_draw + i] = x + centre[c];
        }
    }
}

static const struct {
    int64_t n_chain;
    double centre[MOST_CHAINS]; /* of the chains, in standard deviations */
    int64_t count, size[4];     /* the modes there are */
} cases[] = {
    {2, {0, 6}, 2, {1, 1}},
    {4, {0, 6, 0, 6}, 2, {2, 2}},
    {4, {-7, 0, 6, 0}, 3, {2, 1, 1}},
    {4, {18, 0, 6, 12}, 4, {1, 1, 1, 1}},
    {8, {0, 0, 0, -13, 0, 0, 0, 0}, 2, {7, 1}},
    {8, {0, 0, 6, 6, 12, 12, 18, 18}, 4, {2, 2, 2, 2}},
    {16, {0, 6, 12, 18, 24, 30, 36, 42, 0, 6, 12, 18, 24, 30, 36, 42}, 8, {2, 2, 2, 2}},
    {4, {0, 0, 0, 0}, 0, {0}},
    {4, {0, 1, 0, 1}, 0, {0}}, /* chains that mix slowly are as far apart */
    {4, {0, 2, 4, 6}, 0, {0}}, /* each overlaps the next */
};

START_TEST(modes_are_counted)
{
    static double draws[MOST_CHAINS * MOST_DRAWS];
    const int64_t n_chain = cases[_i].n_chain;

    for (uint64_t seed = 1; seed <= 5; seed++)
        for (int64_t n_draw = 100; n_draw <= MOST_DRAWS; n_draw += 900) {
            draw_series(seed, n_chain, n_draw, 0.5, cases[_i].centre, draws);
            const em_modes modes = modes_of(1, n_chain, n_draw, draws);
            ck_assert_int_eq(modes.count, cases[_i].count);
            ck_assert_int_eq(modes.unsettled, 0);
            for (int64_t i = 0; i < modes.count && i < 4; i++)
                ck_assert_int_eq(modes.size[i], cases[_i].size[i]);
        }
}
END_TEST

/* Copies the first draws of each chain. */
static void take_first(int64_t n_chain, int64_t n_draw, const double *draws, int64_t n, double *out)
{
    for (int64_t c = 0; c < n_chain; c++)
        memcpy(out + c * n, draws + c * n_draw, (size_t)n * sizeof *out);
}

/* By the first number chains 0 and 1 are apart from 2 and 3. By the second, chain 3 began with a
 * few draws of the mode of chain 2: 8 % of the first half of the draws, 4 % of all. */
START_TEST(more_draws_show_more_modes)
{
    enum { FOUR = 4, ALL = 200, HALF = ALL / 2, N = FOUR * ALL, BEGUN = 8 };
    static const double first[] = {0, 0, 9, 9}, second[] = {0, 0, 0, 6};
    static double draws[2 * N], half[N];

    for (uint64_t seed = 1; seed <= 5; seed++) {
        draw_series(seed, FOUR, ALL, 0.3, first, draws);
        draw_series(seed + 100, FOUR, ALL, 0.3, second, draws + N);
        for (int i = 0; i < BEGUN; i++)
            draws[N + 3 * ALL + i] -= 6;
        take_first(FOUR, ALL, draws, HALF, half);
        take_first(FOUR, ALL, draws + N, HALF, half + N / 2);
        const em_modes before = modes_of(2, FOUR, HALF, half), now = modes_of(2, FOUR, ALL, draws);
        ck_assert_int_eq(before.count, 2);
        ck_assert_int_eq(now.count, 3);
        ck_assert(em_modes_stay_separate(&before, &now));
        ck_assert(em_modes_stay_separate(&before, &before));
        ck_assert(!em_modes_stay_separate(&now, &before)); /* chains have crossed */
    }
}
END_TEST

START_TEST(chains_that_have_not_settled_may_cross)
{
    const em_modes settled = {.count = 2, .n_chain = 16, .unsettled = 1, .size = {8, 7}};
    em_modes other = settled;

    ck_assert(em_modes_stay_separate(&settled, &settled));
    other.unsettled = 2;
    ck_assert(!em_modes_stay_separate(&settled, &other));
    ck_assert(em_modes_stay_separate(&other, &settled)); /* they have settled since */
    other = (em_modes){.n_chain = 16};
    ck_assert(!em_modes_stay_separate(&other, &settled)); /* no modes before */
    ck_assert(!em_modes_stay_separate(&other, &other));
}
END_TEST

/* On a circle no number shows all modes, and two of them do. */
START_TEST(modes_of_two_numbers)
{
    enum { N = MOST_CHAINS * 200 };
    static double draws[2 * N];
    double centre[2][MOST_CHAINS];

    for (int c = 0; c < MOST_CHAINS; c++) {
        centre[0][c] = 20 * cos(2 * M_PI * (c % 8) / 8);
        centre[1][c] = 20 * sin(2 * M_PI * (c % 8) / 8);
    }
    for (int k = 0; k < 2; k++)
        draw_series((uint64_t)k, MOST_CHAINS, 200, 0.5, centre[k], draws + k * N);
    ck_assert_int_eq(modes_of(1, MOST_CHAINS, 200, draws).count, 5);
    ck_assert_int_eq(modes_of(2, MOST_CHAINS, 200, draws).count, 8);
    memcpy(draws + N, draws, sizeof(double[N])); /* a number that says the same adds none */
    ck_assert_int_eq(modes_of(2, MOST_CHAINS, 200, draws).count, 5);
}
END_TEST

/* How many of 200 sets of chains in one mode are said to be in several. */
static int count_false(int64_t n_chain, int64_t n_draw, double rho)
{
    static double draws[MOST_CHAINS * MOST_DRAWS];
    const double centre[MOST_CHAINS] = {0};
    int n = 0;

    for (uint64_t seed = 1; seed <= 200; seed++) {
        draw_series(seed, n_chain, n_draw, rho, centre, draws);
        n += modes_of(1, n_chain, n_draw, draws).count > 0;
    }
    return n;
}

/* Chains that mix slowly wander over each other, or drift: at most 1 in 50 looks like modes, and of
 * five independent draws a chain none. */
START_TEST(slow_chains_are_no_modes)
{
    for (int64_t n_chain = 2; n_chain <= MOST_CHAINS; n_chain *= 2) {
        ck_assert_int_eq(count_false(n_chain, 1000, 0.99), 0);
        ck_assert_int_le(count_false(n_chain, 100, 0.99), 4);
        ck_assert_int_le(count_false(n_chain, 1000, 0.999), 4);
        ck_assert_int_le(count_false(n_chain, 1000, 0.9999), 4);
    }
}
END_TEST

START_TEST(no_modes_where_it_cannot_be_said)
{
    static double draws[CHAINS][DRAWS];

    draw(1, 3, 10, draws);
    ck_assert_int_eq(modes_of(1, CHAINS, DRAWS, &draws[0][0]).count, 2);
    ck_assert_int_eq(modes_of(1, 1, DRAWS, &draws[0][0]).count, 0);
    ck_assert_int_eq(modes_of(1, CHAINS, 15, &draws[0][0]).count, 0);
    draws[3][7] = NAN;
    ck_assert_int_eq(modes_of(1, CHAINS, DRAWS, &draws[0][0]).count, 0);
    draws[3][7] = INFINITY;
    ck_assert_int_eq(modes_of(1, CHAINS, DRAWS, &draws[0][0]).count, 0);
    draw(1, 0, 0, draws);
    for (int i = 0; i < DRAWS; i++) /* a chain that stands still is none */
        draws[2][i] = 50;
    ck_assert_int_eq(modes_of(1, CHAINS, DRAWS, &draws[0][0]).count, 0);
    draw(1, 2, 10, draws);
    for (int i = 0; i < DRAWS / 2; i++) /* one that goes over is in neither */
        draws[8][i] += 10;
    const em_modes modes = modes_of(1, CHAINS, DRAWS, &draws[0][0]);
    ck_assert_int_eq(modes.count, 2);
    ck_assert_int_eq(modes.unsettled, 1);
    ck_assert_int_eq(modes.size[0], 6);
    ck_assert_int_eq(modes.size[1], 2);
}
END_TEST

START_TEST(modes_in_words)
{
    char text[256];

    em_modes_describe(&(em_modes){2, 4, 0, {2, 2}}, sizeof text, text);
    ck_assert_str_eq(text, "2 modes (2 and 2 of 4 chains)");
    em_modes_describe(&(em_modes){3, 8, 1, {4, 2, 1}}, sizeof text, text);
    ck_assert_str_eq(text, "3 modes (4, 2 and 1 of 8 chains)");
    em_modes_describe(&(em_modes){20, 20, 0, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
                      sizeof text, text);
    ck_assert_str_eq(text, "20 modes (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ... of 20 "
                           "chains)");
}
END_TEST

START_TEST(growth_without_end)
{
    static double draws[CHAINS][DRAWS];

    draw((uint64_t)_i, 0, 0, draws);
    ck_assert(!em_grows(CHAINS, DRAWS, &draws[0][0]));
    draw((uint64_t)_i, 4, 1e9, draws); /* large, but not that large */
    ck_assert(!em_grows(CHAINS, DRAWS, &draws[0][0]));
    draw((uint64_t)_i, 4, 1e11, draws);
    ck_assert(em_grows(CHAINS, DRAWS, &draws[0][0]));
    draw((uint64_t)_i, 0, 0, draws);
    for (int i = 0; i < DRAWS; i++)
        draws[3][i] += 2.0 * i;
    ck_assert(em_grows(CHAINS, DRAWS, &draws[0][0]));
    ck_assert(!em_grows(CHAINS, 15, &draws[0][0]));
    for (int i = 0; i < DRAWS; i++) /* there and back */
        draws[3][i] -= i < DRAWS / 2 ? 0 : 4.0 * (i - DRAWS / 2);
    ck_assert(!em_grows(CHAINS, DRAWS, &draws[0][0]));
}
END_TEST

/* Marks draws below `most`, each `every`-th of them; returns how many. */
static int mark(double draws[CHAINS][DRAWS], double most, int every, double marked[CHAINS][DRAWS])
{
    int met = 0, n = 0;

    for (int c = 0; c < CHAINS; c++)
        for (int i = 0; i < DRAWS; i++) {
            marked[c][i] = draws[c][i] < most && met++ % every == 0;
            n += marked[c][i] != 0;
        }
    return n;
}

static em_divergence_cluster gathering(double draws[CHAINS][DRAWS], double marked[CHAINS][DRAWS],
                                       double ess)
{
    em_divergence_cluster out;

    ck_assert_int_eq(
        em_find_divergence_cluster(CHAINS, DRAWS, &draws[0][0], &marked[0][0], ess, 20, &out),
        EM_OK);
    return out;
}

START_TEST(marked_draws_gather)
{
    static double draws[CHAINS][DRAWS], marked[CHAINS][DRAWS], same[CHAINS][DRAWS];
    const double all = CHAINS * DRAWS;
    em_divergence_cluster found;

    draw((uint64_t)_i, 0, 0, draws);
    const double n = mark(draws, -1, 2, marked);
    found = gathering(draws, marked, all);
    /* all of them are among the n_below lowest, with as many others */
    ck_assert_double_eq_tol(found.distance, 1 - n / (all - n), 2 / (all - n));
    ck_assert(found.distance > found.by_chance);
    for (int i = 0; i < CHAINS * DRAWS; i++) /* ranks, from either end */
        (&same[0][0])[i] = -exp(3 * (&draws[0][0])[i]);
    ck_assert_double_eq_tol(gathering(same, marked, all).distance, found.distance, 1e-12);

    ck_assert_double_eq(mark(draws, -1, 1000, marked), 1); /* one says nothing */
    found = gathering(draws, marked, all);
    ck_assert(found.by_chance > 1);
    mark(draws, INFINITY, 17, marked); /* anywhere: chance */
    found = gathering(draws, marked, all);
    ck_assert(found.distance < found.by_chance && found.by_chance < 0.5);
    for (int c = 0; c < CHAINS; c++) /* a chain that stood still is one draw */
        for (int i = 0; i < DRAWS; i++) {
            marked[c][i] = c == 0 && i >= 50 && i < 90;
            draws[c][i] = marked[c][i] != 0 ? -9 : draws[c][i];
        }
    ck_assert(gathering(draws, marked, all / 50).by_chance > 1);
    ck_assert(gathering(draws, marked, all).by_chance <
              1); /* which is told by what draws are worth */
}
END_TEST

START_TEST(nothing_gathers_where_it_cannot_be_said)
{
    static double draws[CHAINS][DRAWS], marked[CHAINS][DRAWS];

    draw(1, 0, 0, draws);
    ck_assert_double_eq(gathering(draws, marked, NAN).distance, 0);
    mark(draws, INFINITY, 1, marked);
    ck_assert_double_eq(gathering(draws, marked, 100).distance, 0);
    mark(draws, -1, 1, marked);
    ck_assert(gathering(draws, marked, NAN).by_chance > 0.5); /* a draw for each chain */
    draws[2][3] = NAN;
    ck_assert_double_eq(gathering(draws, marked, 100).distance, 0);
    for (int i = 0; i < CHAINS * DRAWS; i++)
        (&draws[0][0])[i] = 7; /* ties */
    ck_assert_double_eq(gathering(draws, marked, 100).distance, 0);
}
END_TEST

START_TEST(stretches_without_a_move)
{
    double state[EM_STILL_STATE] = {0};
    const double x[] = {1, 1, 1, 2, 3, 3, 3, 3, 1, 1};

    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        em_still_add(state, x[i]);
    ck_assert_double_eq(em_still_longest(state), 3);
}
END_TEST

/* Of 4000 draws at acceptance 0.8 nobody sees 24 rejections in a row in an age of the universe, but
 * at 0.2 somebody does; at 0.3 not 70. */
START_TEST(more_than_chance)
{
    ck_assert(!em_still_is_stuck(24, 1000, 4000, 0.8));
    ck_assert(em_still_is_stuck(25, 1000, 4000, 0.8));
    ck_assert(!em_still_is_stuck(70, 1000, 4000, 0.2));
    ck_assert(em_still_is_stuck(70, 1000, 4000, 0.3));
    ck_assert(em_still_is_stuck(99, 100, 400, 0.001)); /* the chain has one draw, 100 times */
    ck_assert(!em_still_is_stuck(98, 100, 400, 0.001));
    ck_assert(!em_still_is_stuck(9, 10, 40, 0.8));       /* too few to tell */
    ck_assert(!em_still_is_stuck(49, 4000, 16000, 0.8)); /* twice as long: 25 of 1000, 50 of 4000 */
    ck_assert(em_still_is_stuck(50, 4000, 16000, 0.8));
}
END_TEST

int main(void)
{
    TCase *all = tcase_create("modes");

    tcase_add_loop_test(all, modes_are_counted, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(all, more_draws_show_more_modes);
    tcase_add_test(all, chains_that_have_not_settled_may_cross);
    tcase_add_test(all, modes_of_two_numbers);
    tcase_add_test(all, slow_chains_are_no_modes);
    tcase_add_test(all, no_modes_where_it_cannot_be_said);
    tcase_add_test(all, modes_in_words);
    tcase_add_loop_test(all, growth_without_end, 1, 6);
    tcase_add_loop_test(all, marked_draws_gather, 1, 6);
    tcase_add_test(all, nothing_gathers_where_it_cannot_be_said);
    tcase_add_test(all, stretches_without_a_move);
    tcase_add_test(all, more_than_chance);
    return run_case(all, CK_FORK);
}
