/*
 * Parts of the posterior without an optimum of their own (adaptation/starts/mode_visits.h,
 * outer_mass.h): a narrow part that is missed by the draws around it, and a wide one by those
 * inside of it, are told with their mass; so is a narrow one that only trajectories pass
 * (steep_search.h); heavy tails and funnels are not told.
 */
#include "base/memory.h"
#include "math/rng.h"
#include "support/on_grid.h"
#include "support/search_bench.h"

#include <math.h>
#include <string.h>

/* A half each of N(0, I) and N(0, 0.1^2 I) in ten dimensions. The narrow part has the only optimum.
 */
static double narrow_in_wide(const void *of, const double *x, double *slope)
{
    enum { D = 10 };
    const double variance = 0.01;
    double square = 0;

    (void)of;
    for (int i = 0; i < D; i++)
        square += x[i] * x[i];
    const double wide = -square / 2, narrow = -square / (2 * variance) - D * log(variance) / 2;
    const double top = fmax(wide, narrow), sum = log(exp(wide - top) + exp(narrow - top));
    for (int i = 0; i < D; i++)
        slope[i] = -x[i] * (exp(wide - top) + exp(narrow - top) / variance) / exp(sum);
    return top + sum;
}

/* The same in three dimensions, with the narrow part at (3, 0, 0). */
static double narrow_in_tail(const void *of, const double *x, double *slope)
{
    enum { D = 3 };
    const double variance = 0.01, from[D] = {x[0] - 3, x[1], x[2]};
    double square = 0, near = 0;

    (void)of;
    for (int i = 0; i < D; i++) {
        square += x[i] * x[i];
        near += from[i] * from[i];
    }
    const double wide = -square / 2, narrow = -near / (2 * variance) - D * log(variance) / 2;
    const double top = fmax(wide, narrow), sum = log(exp(wide - top) + exp(narrow - top));
    for (int i = 0; i < D; i++)
        slope[i] = -(x[i] * exp(wide - top) + from[i] * exp(narrow - top) / variance) / exp(sum);
    return top + sum;
}

/* Student's t with three degrees of freedom in twenty dimensions. */
static double heavy_tails(const void *of, const double *x, double *slope)
{
    enum { D = 20, NU = 3 };
    double square = 0;

    (void)of;
    for (int i = 0; i < D; i++)
        square += x[i] * x[i];
    for (int i = 0; i < D; i++)
        slope[i] = -(NU + D) * x[i] / (NU + square);
    return -(NU + D) / 2.0 * log1p(square / NU);
}

typedef enum part { NARROW, WIDE, BOTH } part;

/* Sets the chains to independent draws, number i of each. `of`: a part of narrow_in_wide. */
static void draw_nested(search_bench *b, part of, int64_t i)
{
    for (int64_t c = 0; c < N_CHAIN; c++) {
        double *theta = b->block->theta + c * b->block->stride;
        em_normals(&(em_stream){b->seed, (uint64_t)c, (uint64_t)i, EM_RNG_TEST}, 10, theta);
        for (int k = 0; k < 10 && (of == NARROW || (of == BOTH && (c + i) % 2)); k++)
            theta[k] *= 0.1;
    }
    ck_assert_int_eq(em_block_evaluate(b->posterior, b->block), EM_OK);
}

/* `of`: a part of narrow_in_tail. */
static void draw_tail(search_bench *b, part of, int64_t i)
{
    for (int64_t c = 0; c < N_CHAIN; c++) {
        double *theta = b->block->theta + c * b->block->stride;
        em_normals(&(em_stream){b->seed, (uint64_t)c, (uint64_t)i, EM_RNG_TEST}, 3, theta);
        for (int k = 0; k < 3 && of == BOTH && (c + i) % 2; k++)
            theta[k] = 0.1 * theta[k] + (k == 0 ? 3 : 0);
    }
    ck_assert_int_eq(em_block_evaluate(b->posterior, b->block), EM_OK);
}

static void draw_heavy_tails(search_bench *b, part of, int64_t i)
{
    (void)of;
    for (int64_t c = 0; c < N_CHAIN; c++) {
        double *theta = b->block->theta + c * b->block->stride, square = 0;
        _Alignas(64) double z[24];
        em_normals(&(em_stream){b->seed, (uint64_t)c, (uint64_t)i, EM_RNG_TEST}, 23, z);
        for (int k = 20; k < 23; k++)
            square += z[k] * z[k] / 3;
        for (int k = 0; k < 20; k++)
            theta[k] = z[k] / sqrt(square);
    }
    ck_assert_int_eq(em_block_evaluate(b->posterior, b->block), EM_OK);
}

static void draw_funnel(search_bench *b, part of, int64_t i)
{
    (void)of;
    for (int64_t c = 0; c < N_CHAIN; c++) {
        double *theta = b->block->theta + c * b->block->stride;
        em_normals(&(em_stream){b->seed, (uint64_t)c, (uint64_t)i, EM_RNG_TEST}, 10, theta);
        theta[0] *= 3;
        for (int k = 1; k < 10; k++)
            theta[k] *= exp(theta[0] / 2);
    }
    ck_assert_int_eq(em_block_evaluate(b->posterior, b->block), EM_OK);
}

/* The findings where warmup ends with draws of the part `warmup`, whose variance is `variance`, and
 * sampling has draws of the part `sampling`. */
static em_mode_findings find(search_bench *b, void (*draw)(search_bench *, part, int64_t),
                             part warmup, double variance, part sampling)
{
    const em_search_plan plan = {.least = N_CHAIN + 16, .most = N_CHAIN + 24};
    double scale[MOST_DIM];
    em_mode_findings judged;
    double *theta = NULL;

    ck_assert_int_eq(em_allocate(N_CHAIN * b->block->stride, sizeof *theta, &theta), EM_OK);
    for (int i = 0; i < MOST_DIM; i++)
        scale[i] = variance;
    search_start(b);
    draw(b, warmup, 0);
    ck_assert_int_eq(em_mode_search_repeat(b->search, b->posterior, &plan, search_start_law, b,
                                           b->block, scale, b->gradients),
                     EM_OK);
    ck_assert_int_eq(em_mode_search_outside(b->search, b->posterior, b->block, scale, b->gradients),
                     EM_OK);
    for (int64_t i = 1; i <= 200; i++) {
        draw(b, sampling, i);
        em_mode_search_observe(b->search, b->block, i);
    }
    memcpy(theta, b->block->theta, (size_t)(N_CHAIN * b->block->stride) * sizeof *theta);
    ck_assert_int_eq(em_mode_search_judge(b->search, b->posterior, 1, theta, &judged), EM_OK);
    em_release(&theta);
    return search_conclude(b);
}

START_TEST(a_narrow_part_inside_of_the_draws_is_told)
{
    search_bench b;

    for (part sampling = WIDE; sampling <= BOTH; sampling++) {
        open_search(narrow_in_wide, NULL, 10, (uint64_t)_i, &b);
        const em_mode_findings found = find(&b, draw_nested, WIDE, 1, sampling);
        ck_assert_int_eq(found.n_mode, 1);
        ck_assert_int_eq(found.n_missed, sampling == WIDE);
        ck_assert(sampling == WIDE ? fabs(found.log_mass) < 0.3 : isnan(found.log_mass));
        close_search(&b);
    }
}
END_TEST

START_TEST(a_wide_part_around_the_draws_is_told)
{
    search_bench b;

    for (part sampling = NARROW; sampling <= BOTH; sampling += BOTH) {
        open_search(narrow_in_wide, NULL, 10, (uint64_t)_i, &b);
        const em_mode_findings found = find(&b, draw_nested, NARROW, 0.01, sampling);
        ck_assert(sampling == NARROW ? fabs(found.log_mass) < 0.3 : isnan(found.log_mass));
        close_search(&b);
    }
}
END_TEST

/* Draws are independent and from the whole law. */
START_TEST(heavy_tails_and_funnels_have_no_such_part)
{
    search_bench b;

    open_search(heavy_tails, NULL, 20, (uint64_t)_i, &b);
    ck_assert(isnan(find(&b, draw_heavy_tails, BOTH, 3, BOTH).log_mass));
    close_search(&b);
    open_search(funnel, NULL, 10, (uint64_t)_i, &b);
    ck_assert(isnan(find(&b, draw_funnel, BOTH, 9, BOTH).log_mass));
    close_search(&b);
}
END_TEST

/* ---------------------------------------------------------------- steep points */

/* Passes the position of each chain of `from` on as the first point of a trajectory, with the
 * square of a gradient that is in units of standard deviations. */
static void pass_points(search_bench *b, double scale)
{
    em_steep_points *steep = em_mode_search_steep_points(b->search);

    for (int64_t c = 0; c < N_CHAIN; c++) {
        const double *g = b->block->gradient + c * b->block->stride;
        double square = 0;
        for (int64_t i = 0; i < b->block->dim; i++)
            square += scale * g[i] * g[i];
        em_steep_points_begin(steep, b->block->chain[c]);
        em_steep_points_take(steep, b->block->chain[c], square, b->block->log_density[c],
                             b->block->theta + c * b->block->stride);
    }
}

/* The findings from steep points where draws are of the part `sampling`. In between, trajectories
 * pass points of both parts, or do not. */
static em_mode_findings find_from_steep(search_bench *b,
                                        void (*draw)(search_bench *, part, int64_t),
                                        double variance, part sampling, bool passes)
{
    em_mode_findings found = {.log_mass = NAN};
    double scale[MOST_DIM];

    for (int i = 0; i < MOST_DIM; i++)
        scale[i] = variance;
    for (int64_t i = 1; i <= 200; i++) {
        draw(b, BOTH, i);
        if (passes)
            pass_points(b, variance);
        draw(b, sampling, 1000 + i);
        em_mode_search_observe(b->search, b->block, i);
    }
    ck_assert_int_eq(
        em_mode_search_from_steep(b->search, b->posterior, NULL, b->block, scale, &found), EM_OK);
    return found;
}

static const em_search_plan notes = {.least = 12, .most = 12, .notes_steep = true};

START_TEST(a_narrow_part_that_trajectories_pass_is_told)
{
    static const part sampling[] = {WIDE, BOTH, WIDE};
    search_bench b;

    for (int k = 0; k < 3; k++) {
        open_search_with(&notes, narrow_in_tail, NULL, 3, (uint64_t)_i, &b);
        const em_mode_findings found = find_from_steep(&b, draw_tail, 1, sampling[k], k < 2);
        ck_assert_int_eq(found.n_missed, k == 0);
        ck_assert(k == 0 ? fabs(found.log_mass) < 0.3 : isnan(found.log_mass));
        close_search(&b);
    }
}
END_TEST

START_TEST(steep_points_of_heavy_tails_and_funnels_tell_nothing)
{
    search_bench b;

    open_search_with(&notes, heavy_tails, NULL, 20, (uint64_t)_i, &b);
    ck_assert(isnan(find_from_steep(&b, draw_heavy_tails, 3, BOTH, true).log_mass));
    close_search(&b);
    open_search_with(&notes, funnel, NULL, 10, (uint64_t)_i, &b);
    ck_assert(isnan(find_from_steep(&b, draw_funnel, 9, BOTH, true).log_mass));
    ck_assert(isfinite(em_mode_search_steep_points(b.search)->log_density[0]));
    close_search(&b);
}
END_TEST

/* The first point of a trajectory beyond the limit, and of these the one with the largest finite
 * log density. */
START_TEST(the_highest_of_the_first_steep_points_is_kept)
{
    em_owner memory = {NULL};
    static const struct {
        double begins, square, log_density;
    } taken[] = {{1, 52, 9},   {0, 53, 8},  {0, 1e6, 7}, {1, NAN, 9},        {0, INFINITY, 9},
                 {0, 1e6, -1}, {1, 1e6, 2}, {1, 1e6, 1}, {1, 1e6, INFINITY}, {0, 1e6, 5}};
    double theta[8] = {0};
    em_steep_points points;

    ck_assert_int_eq(em_steep_points_create(&memory, 3, 2, 4, &points), EM_OK);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        if (taken[i].begins != 0)
            em_steep_points_begin(&points, 4);
        theta[0] = (double)i;
        em_steep_points_take(&points, 4, taken[i].square, taken[i].log_density, theta);
    }
    ck_assert(points.log_density[0] == -INFINITY);
    ck_assert(points.log_density[1] == 8);
    ck_assert(points.theta[8] == 1);
    em_release_owned(&memory);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("missed_parts");
    TCase *parts = tcase_create("parts");

    tcase_add_loop_test(parts, a_narrow_part_inside_of_the_draws_is_told, 1, 11);
    tcase_add_loop_test(parts, a_wide_part_around_the_draws_is_told, 1, 11);
    tcase_add_loop_test(parts, heavy_tails_and_funnels_have_no_such_part, 1, 21);
    tcase_add_loop_test(parts, a_narrow_part_that_trajectories_pass_is_told, 1, 11);
    tcase_add_loop_test(parts, steep_points_of_heavy_tails_and_funnels_tell_nothing, 1, 11);
    tcase_add_test(parts, the_highest_of_the_first_steep_points_is_kept);
    suite_add_tcase(suite, parts);
    return run_suite_on_grid(suite, argc, argv, N_CHAIN, &search_grid);
}
