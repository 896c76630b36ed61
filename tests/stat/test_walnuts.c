/*
 * WALNUTS on a funnel, whose curvature varies along every trajectory, and on a Gaussian: its draws
 * are, leaf by leaf, those of a plain implementation; that is reversible, step by step, and leaves
 * the funnel invariant. The twin that does not look back from where a step has led does neither.
 * Where no error is too large it is NUTS, to the last bit.
 */
#include "par/world.h"
#include "support/array_mass.h"
#include "support/behaviour.h"
#include "support/on_grid.h"
#include "support/plain_trees.h"
#include "support/twin_mass.h"

extern const em_sampler_ops em_nuts, em_walnuts;

static em_grid *grid;

typedef struct walnuts_head {
    em_sampler_options common;
    int64_t max_treedepth, max_halvings;
    double max_error;
} walnuts_head;

typedef struct nuts_head {
    em_sampler_options common;
    int64_t max_treedepth;
} nuts_head;

/* ---- the funnel: v ~ N(0, WIDTH^2), x | v ~ N(0, exp(v)) ---- */

enum { DIM = 2 };

static const double WIDTH = 2;

static void evaluate(plain_point *z)
{
    const double v = z->theta[0], x = z->theta[1], precision = exp(-v);

    z->log_density = -0.5 * (v * v / (WIDTH * WIDTH) + v + x * x * precision);
    z->g[0] = -v / (WIDTH * WIDTH) - 0.5 + 0.5 * x * x * precision;
    z->g[1] = -x * precision;
}

static em_status funnel_add_prior(em_model *base, const em_query *query)
{
    (void)base;
    for (int64_t c = 0; c < query->n_chain; c++) {
        plain_point z;
        memcpy(z.theta, query->theta + c * query->stride, DIM * sizeof *z.theta);
        evaluate(&z);
        query->log_density[c] += z.log_density;
        for (int i = 0; i < DIM; i++)
            query->gradient[c * query->stride + i] += z.g[i];
    }
    return EM_OK;
}

static const em_model_ops funnel_ops = {.name = "funnel", .add_prior = funnel_add_prior};

static void draw_start(uint64_t seed, int64_t chain, double *theta)
{
    const em_stream stream = {seed, (uint64_t)chain, 0, EM_RNG_TEST};
    _Alignas(64) double z[8];

    em_normals(&stream, DIM, z);
    theta[0] = WIDTH * z[0];
    theta[1] = exp(0.5 * theta[0]) * z[1];
}

/* The worst deviation of moments that are known, in Monte Carlo standard errors. */
static double funnel_worst_z(int64_t n_chain, int64_t n_draw, const double *v, const double *x)
{
    static const double expected[] = {0, 4, 0, 1, 0, 0.5};
    double *f = calloc((size_t)(n_chain * n_draw), sizeof *f), worst = 0;
    em_diag *diag;

    em_diag_create(&diag);
    for (int k = 0; k < 6; k++) {
        for (int64_t i = 0; i < n_chain * n_draw; i++) {
            const double z = x[i] * exp(-0.5 * v[i]);
            const double moments[] = {v[i], v[i] * v[i], z, z * z, v[i] * z * z, v[i] > 0};
            f[i] = moments[k];
        }
        worst = fmax(worst, law_z(diag, n_chain, n_draw, f, expected[k]));
    }
    em_diag_destroy(&diag);
    free(f);
    return worst;
}

/* ---- a plain implementation, to compare with ---- */

enum { N_PLAIN_CHAIN = 8 };

static const double unit[] = {1, 0, 0, 1};

typedef struct plain {
    plain_trees trees;
    double max_error;
    int max_halvings;
    bool looks_back; /* what the twin leaves out */
} plain;

/* 2^level steps that take the time h in all: whether energies stay within the largest error. */
static bool keeps(const plain *t, plain_point *z, double h, int level)
{
    double least = plain_energy(&t->trees, z), most = least;

    for (int k = 0; k < 1 << level; k++) {
        plain_leap(&t->trees, z, ldexp(h, -level));
        const double energy = plain_energy(&t->trees, z);
        least = fmin(least, energy);
        most = fmax(most, energy);
    }
    return most - least <= t->max_error;
}

/* The least level that keeps; -1: none does. */
static int choose(const plain *t, const plain_point *z, double h)
{
    for (int level = 0; level <= t->max_halvings; level++) {
        plain_point trial = *z;
        if (keeps(t, &trial, h, level))
            return level;
    }
    return -1;
}

/* From leaf to leaf, in the direction of h; false: there is no such leaf. */
static bool step_on(plain_trees *trees, plain_point *z, double h)
{
    const plain *t = (const plain *)trees;
    const int level = choose(t, z, h);

    trees->diverged = level < 0;
    if (level < 0)
        return false;
    keeps(t, z, h, level);
    return !t->looks_back || choose(t, z, -h) == level;
}

/* With the unit mass on the funnel; `of` has the options. */
static plain plain_of(plain of)
{
    of.trees.dim = DIM;
    of.trees.inverse = unit;
    of.trees.evaluate = evaluate;
    of.trees.step = step_on;
    return of;
}

static plain_point refreshed(const double *theta, uint64_t seed, int64_t chain, int64_t iteration)
{
    const em_stream stream = {seed, (uint64_t)chain, (uint64_t)iteration, EM_RNG_MOMENTUM};
    _Alignas(64) double z[8];
    plain_point out;

    em_normals(&stream, DIM, z);
    memcpy(out.theta, theta, DIM * sizeof *theta);
    memcpy(out.p, z, DIM * sizeof *z);
    evaluate(&out);
    return out;
}

/* ---- the kernel is the plain implementation ---- */

static em_mass *unit_mass(void)
{
    static const double one[] = {1, 1};
    em_mass *mass = NULL;

    ck_assert_int_eq(mass_of_array(EM_MASS_DIAG, DIM, one, &mass), EM_OK);
    return mass;
}

/* Counts the iterations in which chain 0 is not where the plain one is. */
static int count_differences(const walnuts_head *options, double step_size, bool looks_back,
                             int n_iteration)
{
    em_model model = {.ops = &funnel_ops, .dim = DIM};
    em_mass *mass = unit_mass();
    const kernel_run run = {&em_walnuts, options, mass, NULL, step_size, 11};
    static plain t;
    kernel_bench b;
    int count = 0;

    t = plain_of((plain){.trees = {.step_size = step_size,
                                   .max_depth = (int)options->max_treedepth,
                                   .seed = run.seed},
                         .max_error = options->max_error,
                         .max_halvings = (int)options->max_halvings,
                         .looks_back = looks_back});
    bench_open(&model, grid, &run, &b);
    start_anywhere(b.block, 0, &b);
    for (int64_t i = 0; i < n_iteration; i++) {
        const em_step_context context = bench_context(&b, i);
        const plain_point start = refreshed(b.block->theta, run.seed, 0, i);
        const plain_result r = plain_iteration(&t.trees, start, i);
        ck_assert_int_eq(em_walnuts.step(b.sampler, &context, b.block), EM_OK);
        count += plain_differs(&t.trees, &r, b.block);
    }
    bench_close(&b);
    em_mass_destroy(&mass);
    return count;
}

START_TEST(trees_are_those_of_the_plain_implementation)
{
    static const double step[] = {0.1, 0.5, 1, 2, 5};
    const walnuts_head loose = {{0}, 6, 6, 1}, tight = {{0}, 4, 10, 0.05},
                       shallow = {{0}, 5, 1, 0.1};

    ck_assert_int_eq(count_differences(&loose, step[_i], true, 300), 0);
    ck_assert_int_eq(count_differences(&tight, step[_i], true, 300), 0);
    ck_assert_int_eq(count_differences(&shallow, step[_i], true, 300), 0);
}
END_TEST

START_TEST(twin_that_does_not_look_back_differs)
{
    const walnuts_head options = {{0}, 6, 6, 0.5};

    ck_assert_int_gt(count_differences(&options, 1, false, 300), 0);
}
END_TEST

/* Back from where a step has led is where it began, by as many steps; without looking back, not
 * always. */
START_TEST(steps_are_reversible)
{
    static plain t;
    int n_cut = 0, n_refused = 0;

    t = plain_of((plain){.max_error = 0.5, .max_halvings = 8, .looks_back = true});
    for (int64_t i = 0; i < 2000; i++) {
        double theta[DIM];
        draw_start(9, i, theta);
        const plain_point start = refreshed(theta, 9, i, 0);
        plain_point z = start;
        if (!step_on(&t.trees, &z, 1)) {
            n_refused++;
            continue;
        }
        n_cut += choose(&t, &start, 1) > 0;
        ck_assert(step_on(&t.trees, &z, -1));
        for (int k = 0; k < DIM; k++)
            ck_assert_double_lt(fabs(z.theta[k] - start.theta[k]) + fabs(z.p[k] - start.p[k]),
                                1e-6 * (1 + fabs(start.theta[k])));
    }
    ck_assert_int_gt(n_cut, 200);
    ck_assert_int_gt(n_refused, 20);
}
END_TEST

/* ---- laws ---- */

static double kernel_z(uint64_t seed, int64_t n_draw)
{
    enum { N = N_CHAIN };
    const walnuts_head options = {{0}, 6, 8, 0.5};
    em_model model = {.ops = &funnel_ops, .dim = DIM};
    em_mass *mass = unit_mass();
    const kernel_run run = {&em_walnuts, &options, mass, NULL, 1, seed};
    double *draws = calloc((size_t)(2 * N * n_draw), sizeof *draws), z;
    kernel_bench b;

    bench_open(&model, grid, &run, &b);
    for (int64_t c = 0; c < N; c++)
        draw_start(seed, c, b.block->theta + c * b.block->stride);
    bench_start(&b);
    for (int64_t i = 0; i < n_draw; i++) {
        const em_step_context context = bench_context(&b, i);
        ck_assert_int_eq(em_walnuts.step(b.sampler, &context, b.block), EM_OK);
        for (int64_t c = 0; c < N; c++)
            for (int k = 0; k < DIM; k++)
                draws[(k * N + c) * n_draw + i] = b.block->theta[c * b.block->stride + k];
    }
    z = funnel_worst_z(N, n_draw, draws, draws + N * n_draw);
    bench_close(&b);
    em_mass_destroy(&mass);
    free(draws);
    return z;
}

static double twin_z(uint64_t seed, int64_t n_draw)
{
    enum { N = N_PLAIN_CHAIN };
    double *draws = calloc((size_t)(2 * N * n_draw), sizeof *draws), z;
    static plain t;

    t = plain_of((plain){.trees = {.step_size = 1, .max_depth = 6, .seed = seed},
                         .max_error = 0.5,
                         .max_halvings = 8});
    for (int64_t c = 0; c < N; c++) {
        double theta[DIM];
        draw_start(seed, c, theta);
        t.trees.chain = c;
        for (int64_t i = 0; i < n_draw; i++) {
            const plain_result r = plain_iteration(&t.trees, refreshed(theta, seed, c, i), i);
            memcpy(theta, r.draw.theta, sizeof theta);
            for (int k = 0; k < DIM; k++)
                draws[(k * N + c) * n_draw + i] = theta[k];
        }
    }
    z = funnel_worst_z(N, n_draw, draws, draws + N * n_draw);
    free(draws);
    return z;
}

START_TEST(leaves_the_funnel_invariant)
{
    ck_assert_double_lt(kernel_z((uint64_t)_i + 1, 10000), 4);
}
END_TEST

START_TEST(twin_that_does_not_look_back_fails)
{
    ck_assert_double_gt(twin_z((uint64_t)_i + 1, 10000), 4);
}
END_TEST

static em_mass *dense_mass(void)
{
    return multiple_of(EM_MASS_DENSE, 3, dense_of_3, 1);
}

/* With most steps cut, and with hardly any. */
START_TEST(leaves_a_gaussian_invariant)
{
    const walnuts_head tight = {{0}, 6, 8, 0.1}, loose = {{0}, 10, 8, 1};
    const uint64_t seed = (uint64_t)_i + 1;
    em_mass *mass = dense_mass();
    const kernel_run cut = {&em_walnuts, &tight, mass, NULL, 1.2, seed};
    const kernel_run whole = {&em_walnuts, &loose, mass, NULL, 0.4, seed};

    ck_assert_double_lt(law_worst_z(&law_of_three, grid, &cut, 4000, NULL), 4);
    ck_assert_double_lt(law_worst_z(&law_of_three, grid, &whole, 4000, NULL), 4);
    em_mass_destroy(&mass);
}
END_TEST

/* ---- NUTS ---- */

static void draw_with(const em_sampler_ops *ops, const void *options, double *theta)
{
    law_model model = law_model_of(&law_of_three);
    em_mass *mass = dense_mass();
    const kernel_run run = {ops, options, mass, NULL, 0.6, 3};

    run_in_blocks(&model.base, grid, &run, N_CHAIN, theta);
    em_mass_destroy(&mass);
}

START_TEST(without_errors_that_matter_it_is_nuts)
{
    const nuts_head plainly = {{0}, 8};
    const walnuts_head with_patience = {{0}, 8, 10, 1000}, without = {{0}, 8, 10, 0.01};
    double nuts[N_CHAIN * LAW_MOST_DIM], walnuts[N_CHAIN * LAW_MOST_DIM];
    const size_t bytes = N_CHAIN * 3 * sizeof *nuts;

    draw_with(&em_nuts, &plainly, nuts);
    draw_with(&em_walnuts, &with_patience, walnuts);
    ck_assert_mem_eq(nuts, walnuts, bytes);
    draw_with(&em_walnuts, &without, walnuts);
    ck_assert_mem_ne(nuts, walnuts, bytes);
}
END_TEST

/* ---- what every kernel promises ---- */

START_TEST(behaves)
{
    const walnuts_head options = {{0}, 6, 6, 0.05};
    em_mass *mass = dense_mass();
    const kernel_run run = {&em_walnuts, &options, mass, NULL, 0.5, 5};
    law_model model = law_model_of(&law_of_three);

    check_behaviour(&model.base, grid, &run);
    em_mass_destroy(&mass);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("walnuts");
    TCase *law_case = tcase_create("law"), *tree_case = tcase_create("tree");

    tcase_set_timeout(law_case, 120);
    tcase_set_timeout(tree_case, 120);
    tcase_add_loop_test(law_case, leaves_the_funnel_invariant, 0, 3);
    tcase_add_loop_test(law_case, twin_that_does_not_look_back_fails, 0, 3);
    tcase_add_loop_test(law_case, leaves_a_gaussian_invariant, 0, 3);
    tcase_add_loop_test(tree_case, trees_are_those_of_the_plain_implementation, 0, 5);
    tcase_add_test(tree_case, twin_that_does_not_look_back_differs);
    tcase_add_test(tree_case, steps_are_reversible);
    tcase_add_test(tree_case, without_errors_that_matter_it_is_nuts);
    tcase_add_test(tree_case, behaves);
    suite_add_tcase(suite, law_case);
    suite_add_tcase(suite, tree_case);
    return run_suite_on_grid(suite, argc, argv, 8, &grid);
}
