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

typedef struct point {
    double theta[DIM], p[DIM], g[DIM], log_density;
} point;

static void evaluate(point *z)
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
        point z;
        memcpy(z.theta, query->theta + c * query->stride, sizeof z.theta);
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

enum { MOST_LEAVES = 1 << 8, N_PLAIN_CHAIN = 8 };

typedef struct plain {
    double step_size, max_error;
    int max_halvings;
    bool looks_back; /* what the twin leaves out */
    double initial_energy;
    int n_leaf; /* of the current doubling, in the order in which they were made */
    point leaf[MOST_LEAVES];
    bool diverged;
} plain;

typedef struct plain_result {
    point draw;
    int depth;
    bool diverging, saturated;
} plain_result;

static double energy_of(const point *z)
{
    return 0.5 * (z->p[0] * z->p[0] + z->p[1] * z->p[1]) - z->log_density;
}

static void leap(point *z, double step)
{
    for (int i = 0; i < DIM; i++) {
        z->p[i] += 0.5 * step * z->g[i];
        z->theta[i] += step * z->p[i];
    }
    evaluate(z);
    for (int i = 0; i < DIM; i++)
        z->p[i] += 0.5 * step * z->g[i];
}

/* 2^level steps that take the time h in all: whether energies stay within the largest error. */
static bool keeps(const plain *t, point *z, double h, int level)
{
    double least = energy_of(z), most = least;

    for (int k = 0; k < 1 << level; k++) {
        leap(z, ldexp(h, -level));
        least = fmin(least, energy_of(z));
        most = fmax(most, energy_of(z));
    }
    return most - least <= t->max_error;
}

/* The least level that keeps; -1: none does. */
static int choose(const plain *t, const point *z, double h)
{
    for (int level = 0; level <= t->max_halvings; level++) {
        point trial = *z;
        if (keeps(t, &trial, h, level))
            return level;
    }
    return -1;
}

/* From leaf to leaf, in the direction of h; false: there is no such leaf. */
static bool step_on(plain *t, point *z, double h)
{
    const int level = choose(t, z, h);

    t->diverged = level < 0;
    if (level < 0)
        return false;
    keeps(t, z, h, level);
    return !t->looks_back || choose(t, z, -h) == level;
}

static double along(const point *z, const double *sum)
{
    return z->p[0] * sum[0] + z->p[1] * sum[1];
}

static bool straight(const point *leaf, int first, int last)
{
    double sum[DIM] = {0};

    for (int k = first; k <= last; k++)
        for (int i = 0; i < DIM; i++)
            sum[i] += leaf[k].p[i];
    return along(&leaf[first], sum) > 0 && along(&leaf[last], sum) > 0;
}

/* Two neighbouring halves, split before leaf `middle`. */
static bool joined(const point *leaf, int first, int middle, int last)
{
    return straight(leaf, first, last) && straight(leaf, first, middle) &&
           straight(leaf, middle - 1, last);
}

/* A subtree of 2^depth leaves from the point on; false: it is not to be used. */
static bool build(plain *t, int depth, double h, point *z)
{
    const int first = t->n_leaf, half = 1 << depth >> 1;

    if (depth == 0) {
        if (!step_on(t, z, h))
            return false;
        t->leaf[t->n_leaf++] = *z;
        return true;
    }
    return build(t, depth - 1, h, z) && build(t, depth - 1, h, z) &&
           joined(t->leaf, first, first + half, t->n_leaf - 1);
}

static double plain_uniform(uint64_t seed, int64_t chain, int64_t iteration, int64_t index)
{
    const em_stream stream = {seed, (uint64_t)chain, (uint64_t)iteration, EM_RNG_TRAJECTORY};

    return em_uniform(&stream, (uint64_t)index);
}

/* One iteration from z, whose momentum is fresh. */
static plain_result plain_walnuts(plain *t, point z, int max_depth, uint64_t seed, int64_t chain,
                                  int64_t iteration)
{
    static point trajectory[2 * MOST_LEAVES + 1]; /* in the order of time, from `back` to `front` */
    int back = MOST_LEAVES, front = MOST_LEAVES, n_before = 0;
    plain_result r = {.draw = z};
    double total = 1;

    t->initial_energy = energy_of(&z);
    trajectory[back] = z;
    while (r.depth < max_depth) {
        const bool forward = plain_uniform(seed, chain, iteration, 2 * r.depth) < 0.5;
        point end = trajectory[forward ? front : back], draw = end;
        double weight = 0;
        t->n_leaf = 0;
        t->diverged = false;
        const bool usable = build(t, r.depth, forward ? t->step_size : -t->step_size, &end);
        r.diverging = t->diverged;
        if (!usable)
            return r;
        for (int k = 0; k < t->n_leaf; k++) {
            const double w = exp(t->initial_energy - energy_of(&t->leaf[k]));
            weight += w;
            if (k == 0 || plain_uniform(seed, chain, iteration, 48 + n_before + k) < w / weight)
                draw = t->leaf[k];
        }
        n_before += t->n_leaf;
        if (plain_uniform(seed, chain, iteration, 2 * r.depth + 1) < weight / total)
            r.draw = draw;
        total += weight;
        for (int k = 0; k < t->n_leaf; k++)
            trajectory[forward ? ++front : --back] = t->leaf[k];
        r.depth++;
        if (!joined(trajectory, back, forward ? front - t->n_leaf + 1 : back + t->n_leaf, front))
            return r;
    }
    r.saturated = true;
    return r;
}

static point refreshed(const double *theta, uint64_t seed, int64_t chain, int64_t iteration)
{
    const em_stream stream = {seed, (uint64_t)chain, (uint64_t)iteration, EM_RNG_MOMENTUM};
    _Alignas(64) double z[8];
    point out;

    em_normals(&stream, DIM, z);
    memcpy(out.theta, theta, sizeof out.theta);
    memcpy(out.p, z, sizeof out.p);
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

    t = (plain){.step_size = step_size,
                .max_error = options->max_error,
                .max_halvings = (int)options->max_halvings,
                .looks_back = looks_back};
    bench_open(&model, grid, &run, &b);
    start_anywhere(b.block, 0, &b);
    for (int64_t i = 0; i < n_iteration; i++) {
        const em_step_context context = bench_context(&b, i);
        const point start = refreshed(b.block->theta, run.seed, 0, i);
        const plain_result r =
            plain_walnuts(&t, start, (int)options->max_treedepth, run.seed, 0, i);
        double apart = 0;
        ck_assert_int_eq(em_walnuts.step(b.sampler, &context, b.block), EM_OK);
        for (int k = 0; k < DIM; k++)
            apart = fmax(apart, fabs(r.draw.theta[k] - b.block->theta[k]) +
                                    fabs(r.draw.p[k] - b.block->momentum[k]));
        count += !(apart < 1e-9) || r.depth != b.block->stat[EM_STAT_TREE_DEPTH][0] ||
                 r.diverging != b.block->stat[EM_STAT_DIVERGING][0] ||
                 r.saturated != b.block->stat[EM_STAT_REACHED_MAX_TREEDEPTH][0];
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

    t = (plain){.max_error = 0.5, .max_halvings = 8, .looks_back = true};
    for (int64_t i = 0; i < 2000; i++) {
        double theta[DIM];
        draw_start(9, i, theta);
        const point start = refreshed(theta, 9, i, 0);
        point z = start;
        if (!step_on(&t, &z, 1)) {
            n_refused++;
            continue;
        }
        n_cut += choose(&t, &start, 1) > 0;
        ck_assert(step_on(&t, &z, -1));
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

    t = (plain){.step_size = 1, .max_error = 0.5, .max_halvings = 8};
    for (int64_t c = 0; c < N; c++) {
        double theta[DIM];
        draw_start(seed, c, theta);
        for (int64_t i = 0; i < n_draw; i++) {
            const plain_result r = plain_walnuts(&t, refreshed(theta, seed, c, i), 6, seed, c, i);
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

static const double dense_inverse[] = {1.0, 0.3, 0.0, 0.3, 0.7, 0.1, 0.0, 0.1, 0.4};

static em_mass *dense_mass(void)
{
    em_mass *mass = NULL;

    ck_assert_int_eq(mass_of_array(EM_MASS_DENSE, 3, dense_inverse, &mass), EM_OK);
    return mass;
}

/* With most steps cut, and with hardly any. */
START_TEST(leaves_a_gaussian_invariant)
{
    const walnuts_head tight = {{0}, 6, 8, 0.1}, loose = {{0}, 10, 8, 1};
    em_mass *mass = dense_mass();
    double covariance[9];

    law_covariance(&law_of_three, covariance);
    ck_assert_double_lt(law_worst_z(&law_of_three, covariance, grid, &em_walnuts, &tight, mass, 1.2,
                                    (uint64_t)_i + 1, 4000),
                        4);
    ck_assert_double_lt(law_worst_z(&law_of_three, covariance, grid, &em_walnuts, &loose, mass, 0.4,
                                    (uint64_t)_i + 1, 4000),
                        4);
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

    check_allocations(&model.base, grid, &run);
    check_company(&model.base, grid, &run);
    check_divergence(&model.base, grid, &run);
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
