/*
 * NUTS leaves a correlated Gaussian invariant, with dense and diagonal masses unlike the target
 * (test_non_gaussian has it on other densities); and its trees and draws are, leaf by leaf, those
 * of a plain recursive implementation of the paper with Stan's further checks.
 */
#include "par/world.h"
#include "support/array_mass.h"
#include "support/behaviour.h"
#include "support/on_grid.h"
#include "support/twin_mass.h"

extern const em_sampler_ops em_nuts;

static em_grid *grid;

static const double dense_inverse[] = {1.0, 0.3, 0.0, 0.3, 0.7, 0.1, 0.0, 0.1, 0.4};
static const double diag_inverse[] = {0.5, 1.5, 0.2};

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

/* With momenta drawn from `other`, or (NULL) from the mass itself. Takes both. */
static double worst_of(em_mass *good, em_mass *other, int64_t max_treedepth, uint64_t seed)
{
    const nuts_head options = {{0}, max_treedepth};
    twin_mass mass;
    double covariance[9], z;

    twin_of(good, other ? other : good, &mass);
    law_covariance(&law_of_three, covariance);
    z = law_worst_z(&law_of_three, covariance, grid, &em_nuts, &options, &mass.base, 0.5, seed,
                    4000);
    em_mass_destroy(&good);
    em_mass_destroy(&other);
    return z;
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

    ck_assert_double_lt(worst(EM_MASS_DENSE, dense_inverse, 1, 10, seed), 4);
    ck_assert_double_lt(worst(EM_MASS_DENSE, dense_inverse, 1, 2, seed), 4);
    ck_assert_double_lt(worst(EM_MASS_DIAG, diag_inverse, 1, 10, seed), 4);
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

    ck_assert_double_gt(worst(EM_MASS_DENSE, dense_inverse, 0.5, 10, seed), 4);
    ck_assert_double_gt(worst(EM_MASS_DIAG, diag_inverse, 0.5, 10, seed), 4);
}
END_TEST

/* ---- a plain implementation, to compare with ---- */

enum { MOST_LEAVES = 1 << 8, DIM = 3 };

typedef struct point {
    double theta[DIM], p[DIM], g[DIM], log_density;
} point;

/* What plain_nuts is run with; Stan's further checks may be left out. */
typedef struct plain {
    const double *inverse; /* dense W */
    double step_size, initial_energy;
    bool checks_between;
    int n_leaf; /* of the current doubling, in the order in which they were made */
    point leaf[MOST_LEAVES];
    bool diverged;
} plain;

typedef struct plain_result {
    point draw;
    int depth, n_steps;
    bool diverging, saturated;
} plain_result;

static void apply(const double *W, const double *x, double *out)
{
    for (int i = 0; i < DIM; i++) {
        out[i] = 0;
        for (int j = 0; j < DIM; j++)
            out[i] += W[i * DIM + j] * x[j];
    }
}

static double inner(const double *W, const double *x, const double *y)
{
    double v[DIM], sum = 0;

    apply(W, x, v);
    for (int i = 0; i < DIM; i++)
        sum += v[i] * y[i];
    return sum;
}

static void evaluate(point *z)
{
    z->log_density = 0;
    for (int i = 0; i < DIM; i++) {
        z->g[i] = 0;
        for (int j = 0; j < DIM; j++)
            z->g[i] -= law_of_three.precision[i][j] * (z->theta[j] - law_of_three.mean[j]);
        z->log_density += 0.5 * z->g[i] * (z->theta[i] - law_of_three.mean[i]);
    }
}

static double energy_of(const plain *t, const point *z)
{
    return 0.5 * inner(t->inverse, z->p, z->p) - z->log_density;
}

static point leap(const plain *t, point z, double step)
{
    double v[DIM];

    for (int i = 0; i < DIM; i++)
        z.p[i] += 0.5 * step * z.g[i];
    apply(t->inverse, z.p, v);
    for (int i = 0; i < DIM; i++)
        z.theta[i] += step * v[i];
    evaluate(&z);
    for (int i = 0; i < DIM; i++)
        z.p[i] += 0.5 * step * z.g[i];
    return z;
}

/* Leaves first .. last of the row go along with their own sum of momenta, at both ends. */
static bool straight(const plain *t, const point *leaf, int first, int last)
{
    double sum[DIM] = {0};

    for (int k = first; k <= last; k++)
        for (int i = 0; i < DIM; i++)
            sum[i] += leaf[k].p[i];
    return inner(t->inverse, leaf[first].p, sum) > 0 && inner(t->inverse, leaf[last].p, sum) > 0;
}

/* Two neighbouring halves, split before leaf `middle`. */
static bool joined(const plain *t, const point *leaf, int first, int middle, int last)
{
    return straight(t, leaf, first, last) &&
           (!t->checks_between ||
            (straight(t, leaf, first, middle) && straight(t, leaf, middle - 1, last)));
}

/* A subtree of 2^depth leaves from the point on; false: it is not to be used. */
static bool build(plain *t, int depth, double step, point *z)
{
    const int first = t->n_leaf, half = 1 << depth >> 1;

    if (depth == 0) {
        *z = leap(t, *z, step);
        t->leaf[t->n_leaf++] = *z;
        t->diverged = !(energy_of(t, z) - t->initial_energy < 1000);
        return !t->diverged;
    }
    return build(t, depth - 1, step, z) && build(t, depth - 1, step, z) &&
           joined(t, t->leaf, first, first + half, t->n_leaf - 1);
}

static double plain_uniform(uint64_t seed, int64_t iteration, int64_t index)
{
    const em_stream stream = {seed, 0, (uint64_t)iteration, EM_RNG_TRAJECTORY};

    return em_uniform(&stream, (uint64_t)index);
}

/* The draw of a doubling: leaf k takes the place of the one before with probability w_k / (w_0 +
 * ... + w_k). Its total weight into *total. */
static point draw_leaf(const plain *t, uint64_t seed, int64_t iteration, int n_before,
                       double *total)
{
    point draw = t->leaf[0];

    *total = 0;
    for (int k = 0; k < t->n_leaf; k++) {
        const double w = exp(t->initial_energy - energy_of(t, &t->leaf[k]));
        *total += w;
        if (k > 0 && plain_uniform(seed, iteration, 48 + n_before + k) < w / *total)
            draw = t->leaf[k];
    }
    return draw;
}

/* One iteration from z, whose momentum is fresh. */
static plain_result plain_nuts(plain *t, point z, int max_depth, uint64_t seed, int64_t iteration)
{
    static point trajectory[2 * MOST_LEAVES + 1]; /* in the order of time, from `back` to `front` */
    int back = MOST_LEAVES, front = MOST_LEAVES;
    plain_result r = {.draw = z};
    double total = 1;

    t->initial_energy = energy_of(t, &z);
    trajectory[back] = z;
    while (r.depth < max_depth) {
        const bool forward = plain_uniform(seed, iteration, 2 * r.depth) < 0.5;
        point end = trajectory[forward ? front : back];
        double weight;
        t->n_leaf = 0;
        const bool usable = build(t, r.depth, forward ? t->step_size : -t->step_size, &end);
        const int n_before = r.n_steps;
        r.n_steps += t->n_leaf;
        r.diverging = t->diverged;
        if (!usable)
            return r;
        const point draw = draw_leaf(t, seed, iteration, n_before, &weight);
        if (plain_uniform(seed, iteration, 2 * r.depth + 1) < weight / total)
            r.draw = draw;
        total += weight;
        for (int k = 0; k < t->n_leaf; k++)
            trajectory[forward ? ++front : --back] = t->leaf[k];
        r.depth++;
        if (!joined(t, trajectory, back, forward ? front - t->n_leaf + 1 : back + t->n_leaf, front))
            return r;
    }
    r.saturated = true;
    return r;
}

/* Runs the kernel, and the plain one from where chain 0 stood before each iteration; counts where
 * they are not the same. */
static int count_differences(double step_size, int max_depth, bool checks_between, int n_iteration,
                             int *deepest)
{
    const nuts_head options = {{0}, max_depth};
    em_mass *mass = make_mass(EM_MASS_DENSE, dense_inverse);
    const kernel_run run = {&em_nuts, &options, mass, NULL, step_size, 11};
    static plain t;
    law_model model = law_model_of(&law_of_three);
    kernel_bench b;
    int count = 0;

    t = (plain){.inverse = dense_inverse, .step_size = step_size, .checks_between = checks_between};
    bench_open(&model.base, grid, &run, &b);
    start_anywhere(b.block, 0, &b);
    for (int64_t i = 0; i < n_iteration; i++) {
        const em_step_context context = bench_context(&b, i);
        const em_stream stream = {run.seed, 0, (uint64_t)i, EM_RNG_MOMENTUM};
        _Alignas(64) double z[8] = {0}, p[8];
        point start;
        double apart = 0;

        em_normals(&stream, DIM, z);
        em_mass_momentum(b.mass, 1, z, p);
        memcpy(start.theta, b.block->theta, sizeof start.theta);
        memcpy(start.p, p, sizeof start.p);
        evaluate(&start);
        const plain_result r = plain_nuts(&t, start, max_depth, run.seed, i);
        ck_assert_int_eq(em_nuts.step(b.sampler, &context, b.block), EM_OK);
        for (int k = 0; k < DIM; k++)
            apart = fmax(apart, fabs(r.draw.theta[k] - b.block->theta[k]) +
                                    fabs(r.draw.p[k] - b.block->momentum[k]));
        count += !(apart < 1e-9) || r.depth != b.block->stat[EM_STAT_TREE_DEPTH][0] ||
                 r.n_steps != b.block->stat[EM_STAT_N_STEPS][0] ||
                 r.diverging != b.block->stat[EM_STAT_DIVERGING][0] ||
                 r.saturated != b.block->stat[EM_STAT_REACHED_MAX_TREEDEPTH][0];
        *deepest = r.depth > *deepest ? r.depth : *deepest;
    }
    bench_close(&b);
    em_mass_destroy(&mass);
    return count;
}

START_TEST(trees_are_those_of_the_plain_recursion)
{
    static const double step[] = {0.03, 0.2, 0.7, 1.3, 3};
    int deepest = 0;

    ck_assert_int_eq(count_differences(step[_i], 8, true, 500, &deepest), 0);
    ck_assert_int_eq(count_differences(step[_i], 3, true, 500, &deepest), 0);
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
    em_mass *mass = make_mass(_i ? EM_MASS_DENSE : EM_MASS_DIAG, _i ? dense_inverse : diag_inverse);
    const kernel_run run = {&em_nuts, &options, mass, NULL, 0.3, 5};
    law_model model = law_model_of(&law_of_three);

    check_allocations(&model.base, grid, &run);
    check_company(&model.base, grid, &run);
    check_divergence(&model.base, grid, &run);
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
