/*
 * NUTS leaves a correlated Gaussian invariant, with dense and diagonal masses unlike the target
 * (test_non_gaussian has it on other densities); and its trees and draws are, leaf by leaf, those
 * of a plain recursive implementation of the paper with Stan's further checks.
 */
#include "support/array_mass.h"
#include "support/behaviour.h"
#include "support/on_grid.h"
#include "support/plain_trees.h"
#include "support/twin_mass.h"

extern const em_sampler_ops em_nuts;

static em_grid *grid;

typedef struct nuts_head {
    em_sampler_options common;
    int64_t max_treedepth;
} nuts_head;

static em_mass *make_mass(em_structure structure, const double *inverse)
{
    em_mass *mass = NULL;

    ck_assert_int_eq(mass_of_array(structure, 3, inverse, &mass), EM_OK);
    return mass;
}

/* ---- the law ---- */

static double worst_of(em_mass *good, em_mass *other, int64_t max_treedepth, uint64_t seed)
{
    const nuts_head options = {{0}, max_treedepth};
    const kernel_run run = {.ops = &em_nuts, .options = &options, .step_size = 0.5, .seed = seed};

    return twin_worst_z(grid, run, good, other, NULL);
}

/* `noise`: times the variance that fresh momenta should have. */
static double worst(em_structure structure, const double *inverse, double noise,
                    int64_t max_treedepth, uint64_t seed)
{
    return worst_of(multiple_of(structure, 3, inverse, 1),
                    multiple_of(structure, 3, inverse, 1 / noise), max_treedepth, seed);
}

START_TEST(leaves_the_law_invariant)
{
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_lt(worst(EM_MASS_DENSE, dense_of_3, 1, 10, seed), 4);
    ck_assert_double_lt(worst(EM_MASS_DENSE, dense_of_3, 1, 2, seed), 4);
    ck_assert_double_lt(worst(EM_MASS_DIAG, diag_of_3, 1, 10, seed), 4);
}
END_TEST

START_TEST(leaves_the_law_invariant_by_blocks_and_directions)
{
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_lt(worst_of(low_rank_of_3(5), NULL, 10, seed), 4);
    ck_assert_double_lt(worst_of(low_rank_of_3(0.2), NULL, 10, seed), 4);
    ck_assert_double_lt(worst_of(blocks_of_3(1), NULL, 10, seed), 4);
}
END_TEST

/* Momenta without the direction, or without half of their variance. */
START_TEST(twins_by_blocks_and_directions_fail)
{
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_gt(worst_of(low_rank_of_3(5), low_rank_of_3(1), 10, seed), 4);
    ck_assert_double_gt(worst_of(blocks_of_3(1), blocks_of_3(2), 10, seed), 4);
}
END_TEST

START_TEST(twin_with_half_the_noise_fails)
{
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_gt(worst(EM_MASS_DENSE, dense_of_3, 0.5, 10, seed), 4);
    ck_assert_double_gt(worst(EM_MASS_DIAG, diag_of_3, 0.5, 10, seed), 4);
}
END_TEST

/* ---- a plain implementation, to compare with ---- */

enum { DIM = 3 };

static void evaluate(plain_point *z)
{
    z->log_density = 0;
    for (int i = 0; i < DIM; i++) {
        z->g[i] = 0;
        for (int j = 0; j < DIM; j++)
            z->g[i] -= law_of_three.precision[i][j] * (z->theta[j] - law_of_three.mean[j]);
        z->log_density += 0.5 * z->g[i] * (z->theta[i] - law_of_three.mean[i]);
    }
}

static bool step(plain_trees *t, plain_point *z, double h)
{
    plain_leap(t, z, h);
    t->diverged = !(plain_energy(t, z) - t->initial_energy < 1000);
    return true;
}

/* Runs the kernel, and the plain one from where chain 0 stood before each iteration; counts where
 * they are not the same. */
static int count_differences(double step_size, int max_depth, bool checks_between, int n_iteration,
                             int *deepest)
{
    const nuts_head options = {{0}, max_depth};
    em_mass *mass = make_mass(EM_MASS_DENSE, dense_of_3);
    const kernel_run run = {&em_nuts, &options, mass, NULL, step_size, 11};
    static plain_trees t;
    law_model model = law_model_of(&law_of_three);
    kernel_bench b;
    int count = 0;

    t = (plain_trees){.dim = DIM,
                      .max_depth = max_depth,
                      .inverse = dense_of_3,
                      .step_size = step_size,
                      .seed = run.seed,
                      .skips_checks = !checks_between,
                      .evaluate = evaluate,
                      .step = step};
    bench_open(&model.base, grid, &run, &b);
    start_anywhere(b.block, 0, &b);
    for (int64_t i = 0; i < n_iteration; i++) {
        const em_step_context context = bench_context(&b, i);
        const em_stream stream = {run.seed, 0, (uint64_t)i, EM_RNG_MOMENTUM};
        _Alignas(64) double z[8] = {0}, p[8];
        plain_point start;

        em_normals(&stream, DIM, z);
        em_mass_momentum(b.mass, 1, z, p);
        memcpy(start.theta, b.block->theta, sizeof start.theta);
        memcpy(start.p, p, sizeof start.p);
        evaluate(&start);
        const plain_result r = plain_iteration(&t, start, i);
        ck_assert_int_eq(em_nuts.step(b.sampler, &context, b.block), EM_OK);
        count += plain_differs(&t, &r, b.block) || r.n_steps != b.block->stat[EM_STAT_N_STEPS][0];
        *deepest = r.depth > *deepest ? r.depth : *deepest;
    }
    bench_close(&b);
    em_mass_destroy(&mass);
    return count;
}

START_TEST(trees_are_those_of_the_plain_recursion)
{
    static const double size[] = {0.03, 0.2, 0.7, 1.3, 3};
    int deepest = 0;

    ck_assert_int_eq(count_differences(size[_i], 8, true, 500, &deepest), 0);
    ck_assert_int_eq(count_differences(size[_i], 3, true, 500, &deepest), 0);
    ck_assert_int_ge(deepest, _i == 0 ? 6 : 1);
}
END_TEST

/* The comparison sees what a twin without the checks between subtrees does otherwise. */
START_TEST(twin_without_checks_between_differs)
{
    int deepest = 0;

    ck_assert_int_gt(count_differences(0.7, 8, false, 500, &deepest), 0);
}
END_TEST

/* ---- what every kernel promises ---- */

START_TEST(behaves)
{
    const nuts_head options = {{0}, 6};
    em_mass *mass = make_mass(_i ? EM_MASS_DENSE : EM_MASS_DIAG, _i ? dense_of_3 : diag_of_3);
    const kernel_run run = {&em_nuts, &options, mass, NULL, 0.3, 5};
    law_model model = law_model_of(&law_of_three);

    check_behaviour(&model.base, grid, &run);
    em_mass_destroy(&mass);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("nuts");
    TCase *law_case = tcase_create("law"), *tree_case = tcase_create("tree");

    tcase_set_timeout(law_case, 60);
    tcase_set_timeout(tree_case, 60);
    tcase_add_loop_test(law_case, leaves_the_law_invariant, 0, 4);
    tcase_add_loop_test(law_case, twin_with_half_the_noise_fails, 0, 4);
    tcase_add_loop_test(law_case, leaves_the_law_invariant_by_blocks_and_directions, 0, 2);
    tcase_add_loop_test(law_case, twins_by_blocks_and_directions_fail, 0, 2);
    tcase_add_loop_test(tree_case, trees_are_those_of_the_plain_recursion, 0, 5);
    tcase_add_test(tree_case, twin_without_checks_between_differs);
    tcase_add_loop_test(tree_case, behaves, 0, 2);
    suite_add_tcase(suite, law_case);
    suite_add_tcase(suite, tree_case);
    return run_suite_on_grid(suite, argc, argv, 8, &grid);
}
