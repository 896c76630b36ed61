/* Chains that stand still, chains that are not where the others are, and draws that gather. */
#include "diag/apart.h"
#include "diag/diag.h"
#include "diag/gather.h"
#include "math/rng.h"
#include "tap.h"

#include <math.h>

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

START_TEST(a_few_are_apart)
{
    static double draws[CHAINS][DRAWS];
    double scratch[3 * CHAINS];
    em_apart apart;

    draw((uint64_t)_i, 0, 0, draws);
    ck_assert_int_eq(em_find_apart(CHAINS, DRAWS, &draws[0][0], scratch).count, 0);
    for (int n_off = 1; n_off < CHAINS; n_off++) {
        draw((uint64_t)_i, n_off, -10, draws);
        apart = em_find_apart(CHAINS, DRAWS, &draws[0][0], scratch);
        if (2 * n_off < CHAINS) {
            ck_assert_int_eq(apart.count, n_off);
            ck_assert_int_eq(apart.chain, n_off - 1);
            ck_assert_double_eq_tol(apart.distance, 9.5, 1);
        } else /* those that are apart are the others */
            ck_assert_int_eq(apart.count, CHAINS - n_off);
    }
    draw((uint64_t)_i, 2, 1, draws); /* no farther than chains that mix slowly */
    ck_assert_int_eq(em_find_apart(CHAINS, DRAWS, &draws[0][0], scratch).count, 0);
}
END_TEST

START_TEST(nobody_is_apart_where_it_cannot_be_said)
{
    static double draws[CHAINS][DRAWS];
    double scratch[3 * CHAINS];

    draw(1, 1, 10, draws);
    ck_assert_int_eq(em_find_apart(2, DRAWS, &draws[0][0], scratch).count, 0); /* which of two? */
    ck_assert_int_eq(em_find_apart(1, DRAWS, &draws[0][0], scratch).count, 0);
    draws[3][7] = NAN;
    ck_assert_int_eq(em_find_apart(CHAINS, DRAWS, &draws[0][0], scratch).count, 0);
    draws[3][7] = INFINITY;
    ck_assert_int_eq(em_find_apart(CHAINS, DRAWS, &draws[0][0], scratch).count, 0);
    for (int c = 0; c < CHAINS; c++)
        for (int i = 0; i < DRAWS; i++)
            draws[c][i] = c == 0;
    ck_assert_int_eq(em_find_apart(CHAINS, DRAWS, &draws[0][0], scratch).count, 0);
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

static em_gathering gathering(double draws[CHAINS][DRAWS], double marked[CHAINS][DRAWS], double ess)
{
    em_gathering out;

    ck_assert_int_eq(em_find_gathering(CHAINS, DRAWS, &draws[0][0], &marked[0][0], ess, 20, &out),
                     EM_OK);
    return out;
}

START_TEST(marked_draws_gather)
{
    static double draws[CHAINS][DRAWS], marked[CHAINS][DRAWS], same[CHAINS][DRAWS];
    const double all = CHAINS * DRAWS;
    em_gathering found;

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

START_TEST(above_the_others)
{
    const double mean[] = {1, 2, NAN, 10, 3}, alone[] = {1};
    double scratch[5];

    ck_assert_double_eq(em_above_others(5, mean, 3, scratch), 8);
    ck_assert_double_eq(em_above_others(5, mean, 0, scratch), -2);
    ck_assert(isnan(em_above_others(1, alone, 0, scratch)));
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
    ck_assert(!em_still_is_stuck(9, 10, 40, 0.8)); /* too few to tell */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("apart");
    TCase *all = tcase_create("all");

    tcase_add_loop_test(all, a_few_are_apart, 1, 6);
    tcase_add_test(all, nobody_is_apart_where_it_cannot_be_said);
    tcase_add_loop_test(all, marked_draws_gather, 1, 6);
    tcase_add_test(all, nothing_gathers_where_it_cannot_be_said);
    tcase_add_test(all, above_the_others);
    tcase_add_test(all, stretches_without_a_move);
    tcase_add_test(all, more_than_chance);
    suite_add_tcase(suite, all);
    return run_suite(suite, CK_FORK);
}
