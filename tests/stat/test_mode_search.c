/*
 * Where chains begin (adaptation/starts/mode_search.h): one draw a chain, its own basin, no mode
 * that has mass refused, none without mass kept; and what is said of modes that no draw is near to.
 */
#include "adaptation/starts/ascent.h"
#include "base/memory.h"
#include "math/rng.h"
#include "par/world.h"
#include "support/on_grid.h"
#include "support/search_bench.h"

#include <math.h>
#include <string.h>

/* Two normals of unit variance at -5 and 5 along the first axis, of masses 1 and exp(log_mass). */
typedef struct pair_of_modes {
    int dim;
    double log_mass;
} pair_of_modes;

static double two_normals(const void *of, const double *x, double *slope)
{
    const pair_of_modes *p = of;
    double square = 0;

    for (int i = 1; i < p->dim; i++) {
        square += x[i] * x[i];
        slope[i] = -x[i];
    }
    const double a = -(x[0] + 5) * (x[0] + 5) / 2, b = p->log_mass - (x[0] - 5) * (x[0] - 5) / 2;
    const double top = fmax(a, b), sum = log(exp(a - top) + exp(b - top));
    slope[0] = -(x[0] + 5) * exp(a - top - sum) - (x[0] - 5) * exp(b - top - sum);
    return top + sum - square / 2;
}

/* Three tenths N(0, 1) and seven N(m, 0.7^2) in ten dimensions, 20 apart. Where the narrow mode is
 * not the higher one, there is no trace of it. */
static double narrow_mode(const void *of, const double *x, double *slope)
{
    enum { D = 10 };
    static const double m[D] = {9, -7, 5, -9, 3, 6, -5, 8, -3, 2};
    const double variance = 0.49;
    double a = log(0.3), b = log(0.7) - D * log(variance) / 2;

    (void)of;
    for (int i = 0; i < D; i++) {
        a -= x[i] * x[i] / 2;
        b -= (x[i] - m[i]) * (x[i] - m[i]) / (2 * variance);
    }
    const double top = fmax(a, b), sum = log(exp(a - top) + exp(b - top));
    for (int i = 0; i < D; i++)
        slope[i] = -x[i] * exp(a - top - sum) - (x[i] - m[i]) / variance * exp(b - top - sum);
    return top + sum;
}

/* A normal law with standard deviations 1e-3 ... 1e3, turned in the plane of the first and last. */
static double ill_conditioned(const void *of, const double *x, double *slope)
{
    enum { D = 7 };
    const double cosine = 0.6, sine = 0.8;
    double y[D], value = 0;

    (void)of;
    memcpy(y, x, sizeof y);
    y[0] = cosine * x[0] - sine * x[D - 1] - 1;
    y[D - 1] = sine * x[0] + cosine * x[D - 1];
    for (int i = 0; i < D; i++) {
        const double precision = pow(10, 2 * (3 - i));
        value -= precision * y[i] * y[i] / 2;
        y[i] *= -precision;
        slope[i] = y[i];
    }
    slope[0] = cosine * y[0] + sine * y[D - 1];
    slope[D - 1] = -sine * y[0] + cosine * y[D - 1];
    return value;
}

/*
 * Counts of 40 years, Poisson with the logarithm of the rate cubic in the year, and coefficients
 * between -10 and 10: behind a steep place there is a long slope that is nearly straight.
 */
static double counts_of_years(const void *of, const double *x, double *slope)
{
    static const double truth[] = {2, 0.5, -0.3, -0.5};
    double coefficient[4], value = 0;

    (void)of;
    for (int i = 0; i < 4; i++) {
        coefficient[i] = 10 * tanh(x[i] / 2);
        value += log(1 - coefficient[i] * coefficient[i] / 100);
    }
    for (int r = 0; r < 40; r++) {
        const double year = (r - 19.5) / 10;
        double power = 1, log_rate = 0, log_count = 0;
        for (int i = 0; i < 4; i++, power *= year) {
            log_rate += coefficient[i] * power;
            log_count += truth[i] * power;
        }
        value += exp(log_count) * log_rate - exp(log_rate);
        power = 1;
        for (int i = 0; i < 4; i++, power *= year)
            slope[i] += power * (exp(log_count) - exp(log_rate));
    }
    for (int i = 0; i < 4; i++) {
        slope[i] *= 5 * (1 - coefficient[i] * coefficient[i] / 100);
        slope[i] -= coefficient[i] / 10;
    }
    return value;
}

/* ---- searches ---- */

static double first_draw(const search_bench *b, int64_t c)
{
    double theta[MOST_DIM];

    search_start_law((void *)b, c, 0, theta);
    return theta[0];
}

/* ---- ascents ---- */

START_TEST(an_ascent_finds_the_peak_of_an_ill_conditioned_normal_law)
{
    em_owner memory = {NULL};
    enum { D = 7 };
    search_bench b;
    em_ascent *path = NULL;
    double precision[D * D], onward[D], log_mass, exact = 0;

    open_search(ill_conditioned, NULL, D, (uint64_t)_i, &b);
    ck_assert_int_eq(em_ascent_create(&memory, D, &path), EM_OK);
    ck_assert_int_eq(em_ascend(b.posterior, 0, b.block->theta, NULL, path), EM_OK);
    em_optimum end = em_ascent_end(path);
    ck_assert(!path->stuck);
    /* What the ascent leaves a Newton step or two remove. */
    for (int k = 0; k < 3; k++) {
        ck_assert_int_eq(em_laplace(b.posterior, 0, D, &end, precision, &log_mass, onward), EM_OK);
        if (!isnan(log_mass))
            break;
        for (int i = 0; i < D; i++)
            b.block->theta[i] = end.theta[i] + onward[i];
        ck_assert_int_eq(em_ascend(b.posterior, 0, b.block->theta, NULL, path), EM_OK);
        end = em_ascent_end(path);
    }
    for (int i = 0; i < D; i++)
        exact += log(2 * M_PI) / 2 - log(10) * (3 - i);
    ck_assert_double_eq_tol(log_mass, exact, 0.51);
    em_release_owned(&memory);
    close_search(&b);
}
END_TEST

START_TEST(an_ascent_leaves_a_straight_slope_behind_a_steep_place)
{
    em_owner memory = {NULL};
    em_ascent *path = NULL;

    ck_assert_int_eq(em_ascent_create(&memory, 4, &path), EM_OK);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        search_bench b;
        open_search(counts_of_years, NULL, 4, seed, &b);
        for (int c = 0; c < N_CHAIN; c++) {
            const double *theta = b.block->theta + c * b.block->stride;
            ck_assert_int_eq(em_ascend(b.posterior, c, theta, NULL, path), EM_OK);
            if (path->log_density[0] < -1e9) /* no step from there is short enough */
                continue;
            ck_assert(path->converged);
            ck_assert_double_eq_tol(10 * tanh(em_ascent_end(path).theta[0] / 2), 2, 0.2);
        }
        close_search(&b);
    }
    em_release_owned(&memory);
}
END_TEST

/* The end of the way is in the neck (the twin), where a chain begins is not. */
START_TEST(no_chain_begins_in_the_neck_of_a_funnel)
{
    em_owner memory = {NULL};
    double lowest_start = INFINITY, lowest_end = INFINITY;
    search_bench b;
    em_ascent *path = NULL;

    ck_assert_int_eq(em_ascent_create(&memory, 10, &path), EM_OK);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        open_search(funnel, NULL, 10, seed, &b);
        for (int64_t c = 0; c < N_CHAIN; c++) {
            ck_assert_int_eq(
                em_ascend(b.posterior, c, b.block->theta + c * b.block->stride, NULL, path), EM_OK);
            lowest_start = fmin(lowest_start, path->point[em_ascent_start(path) * path->stride]);
            lowest_end = fmin(lowest_end, em_ascent_end(path).theta[0]);
        }
        close_search(&b);
    }
    em_release_owned(&memory);
    ck_assert_double_gt(lowest_start, -9); /* three standard deviations */
    ck_assert_double_lt(lowest_end, -9);
}
END_TEST

/* Whose data leave log sigma about -1.2, with a standard deviation of 0.3: x_i ~ N(0, sigma^2), and
 * y_i ~ N(x_i, 0.5^2), i < 80, whose squares have the mean that sigma = 0.3 gives them. */
static double hierarchy(const void *of, const double *x, double *slope)
{
    enum { N = 80 };
    const double v = x[0], precision = exp(-2 * v);
    double square = 0, misfit = 0;

    (void)of;
    for (int i = 1; i <= N; i++) {
        const double y = (i % 2 ? 1 : -1) * 0.583 * sqrt(3) * (i - 0.5) / N, r = y - x[i];
        square += x[i] * x[i];
        misfit += r * r / 0.25;
        slope[i] = r / 0.25 - precision * x[i];
    }
    slope[0] = 1 - exp(2 * v) - N + precision * square;
    return v - exp(2 * v) / 2 - N * v - precision * square / 2 - misfit / 2;
}

/* Density times volume is about as large all along the neck, and the largest by chance deep in it.
 * The twin, the end of the way, has no more of it than the mouth has. */
START_TEST(few_chains_begin_in_the_neck_of_a_hierarchy)
{
    em_owner memory = {NULL};
    enum { D = 81, N_SEED = 20 };
    const double deep = -4; /* more than eight standard deviations below */
    int n_start = 0, n_end = 0;
    search_bench b;
    em_ascent *path = NULL;

    ck_assert_int_eq(em_ascent_create(&memory, D, &path), EM_OK);
    for (uint64_t seed = 1; seed <= N_SEED; seed++) {
        open_search(hierarchy, NULL, D, seed, &b);
        for (int64_t c = 0; c < N_CHAIN; c++) {
            ck_assert_int_eq(
                em_ascend(b.posterior, c, b.block->theta + c * b.block->stride, NULL, path), EM_OK);
            n_start += path->point[em_ascent_start(path) * path->stride] < deep;
            n_end += em_ascent_end(path).theta[0] < deep;
        }
        close_search(&b);
    }
    em_release_owned(&memory);
    ck_assert_int_lt(n_start, N_SEED * N_CHAIN / 10);
    ck_assert_int_gt(n_end, N_SEED * N_CHAIN / 2);
}
END_TEST

/* ---- basins ---- */

START_TEST(chains_keep_their_basins)
{
    static const double log_masses[] = {0, 2.2, -2.2, 14.5, -14.5};
    static const int dims[] = {1, 5, 10};
    const pair_of_modes p = {dims[_i % 3], log_masses[_i / 3]};
    search_bench b;

    for (uint64_t seed = 1; seed <= 5; seed++) {
        int side[2] = {0, 0};
        open_search(two_normals, &p, p.dim, seed, &b);
        search_start(&b);
        for (int64_t c = 0; c < N_CHAIN; c++) {
            const double x = b.block->theta[c * b.block->stride];
            const double ridge = -p.log_mass / 10; /* where both have the same density */
            side[x > ridge]++;
            if (fabs(first_draw(&b, c) - ridge) > 0.5)
                ck_assert_msg((x > ridge) == (first_draw(&b, c) > ridge), "chain %d from %g to %g",
                              (int)c, first_draw(&b, c), x);
        }
        ck_assert_int_eq(search_conclude(&b).n_redrawn, 0);
        if (p.log_mass == 0)
            ck_assert(side[0] > 0 && side[1] > 0);
        close_search(&b);
    }
}
END_TEST

START_TEST(modes_without_mass_are_refused_and_counted)
{
    const pair_of_modes p = {3, _i ? 15.5 : -15.5};
    const double ridge = -p.log_mass / 10;
    int refused = 0;
    int64_t redrawn = 0;

    for (uint64_t seed = 1; seed <= 10; seed++) {
        search_bench b;
        open_search(two_normals, &p, p.dim, seed, &b);
        search_start(&b);
        for (int64_t c = 0; c < N_CHAIN; c++) {
            refused += (first_draw(&b, c) > ridge) != (p.log_mass > 0) &&
                       fabs(first_draw(&b, c) - ridge) > 0.2; /* an ascent may step over it */
            ck_assert((b.block->theta[c * b.block->stride] > ridge) == (p.log_mass > 0));
        }
        redrawn += search_conclude(&b).n_redrawn;
        close_search(&b);
    }
    ck_assert_int_gt(refused, 0);
    ck_assert_int_ge(redrawn, refused); /* a second draw may lead there too */
    ck_assert_int_le(redrawn, 3 * refused);
}
END_TEST

START_TEST(modes_that_no_draw_is_near_to_are_told)
{
    const pair_of_modes p = {4, -1};
    search_bench b;

    open_search(two_normals, &p, p.dim, 3, &b);
    search_start(&b);
    for (int64_t c = 0; c < N_CHAIN; c++)
        b.block->theta[c * b.block->stride] = -5;
    em_mode_search_observe(b.search, b.block, 0);
    em_mode_findings found = search_conclude(&b);
    ck_assert_int_eq(found.n_mode, 2);
    ck_assert_int_eq(found.n_missed, 1);
    ck_assert_double_eq_tol(found.log_mass, -1, 0.05);
    b.block->theta[0] = 5;
    em_mode_search_observe(b.search, b.block, 1);
    found = search_conclude(&b);
    ck_assert_int_eq(found.n_missed, 0);
    ck_assert(isnan(found.log_mass));
    close_search(&b);
}
END_TEST

/* A mode has a fortieth of the draws and a quarter of the mass: it is missed where a fifth of its
 * share is the least, and not where a hundredth is. What is judged is not observed by that. */
START_TEST(modes_that_hardly_any_draw_is_near_to_are_told)
{
    const pair_of_modes p = {4, -1};

    for (int strict = 0; strict < 2; strict++) {
        search_bench b;
        open_search_with(&(em_search_plan){12, 12, 0, strict ? 0.2 : 0.01}, two_normals, &p, p.dim,
                         3, &b);
        search_start(&b);
        for (int64_t i = 0; i < 40; i++) {
            for (int64_t c = 0; c < N_CHAIN; c++)
                b.block->theta[c * b.block->stride] = i == 7 ? 5 : -5;
            ck_assert_int_eq(em_block_evaluate(b.posterior, b.block), EM_OK);
            em_mode_search_observe(b.search, b.block, i);
        }
        em_mode_findings found = search_conclude(&b);
        ck_assert_int_eq(found.n_missed, strict);
        ck_assert(strict ? fabs(found.log_mass + 1) < 0.05 : isnan(found.log_mass));
        ck_assert_int_eq(em_mode_search_judge(b.search, b.posterior, 1, b.block->theta, &found),
                         EM_OK);
        ck_assert_int_eq(found.n_missed, 1);
        ck_assert_int_eq(search_conclude(&b).n_missed, strict);
        close_search(&b);
    }
}
END_TEST

/* Ascents beyond the least end where their gradients are used up, and a chain has one at least. */
START_TEST(gradients_bound_the_further_ascents)
{
    const pair_of_modes p = {4, -1};
    double taken[3];

    for (int k = 0; k < 3; k++) {
        const em_search_plan plan[] = {{12, 12, 0, 0}, {12, 1200, 0, 0}, {12, 1200, 1000, 0}};
        search_bench b;
        open_search_with(&plan[k], two_normals, &p, p.dim, 3, &b);
        search_start(&b);
        taken[k] = 0;
        for (int c = 0; c < N_CHAIN; c++)
            taken[k] += b.gradients[c];
        close_search(&b);
    }
    ck_assert(taken[0] == taken[1]);
    ck_assert(taken[2] > 1000 && taken[2] < 5000);
}
END_TEST

/* As many gradients in ascents as in ascents and probes find the wide mode only. */
START_TEST(probes_find_a_narrow_mode)
{
    for (int probes = 0; probes < 2; probes++) {
        search_bench b;
        const em_search_plan plan = {.least = 60,
                                     .most = probes ? 60 : 10000,
                                     .gradients = 20000,
                                     .keeps_one = true,
                                     .farthest = probes ? 300 : 0,
                                     .seed = (uint64_t)_i};
        open_search_with(&plan, narrow_mode, NULL, 10, (uint64_t)_i, &b);
        search_start(&b);
        ck_assert_int_eq(em_mode_search_n_mode(b.search), 1 + probes);
        for (int c = 0; c < N_CHAIN; c++)
            ck_assert(b.gradients[c] < 2 * 20000 / N_CHAIN);
        for (int m = 0; probes && m < 2; m++) {
            const em_mode_law mode = em_mode_search_mode(b.search, m);
            ck_assert(fabs(mode.log_mass - 5 * log(2 * M_PI) -
                           log(mode.centre[0] > 4 ? 0.7 : 0.3)) < 0.01);
        }
        close_search(&b);
    }
}
END_TEST

/* Where a chain has room for one ascent at a time, and no normal law explains a probe, there are
 * hundreds of rounds of probes. */
START_TEST(probes_end_after_many_rounds)
{
    const em_search_plan plan = {.least = 2 * N_CHAIN,
                                 .most = 2 * N_CHAIN,
                                 .gradients = 20000 * N_CHAIN,
                                 .keeps_one = true,
                                 .farthest = 300};
    search_bench b;

    open_search_with(&plan, funnel, NULL, 10, 1, &b);
    search_start(&b);
    for (int c = 0; c < N_CHAIN; c++)
        ck_assert(b.gradients[c] >= 20000);
    close_search(&b);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("mode_search");
    TCase *ascents = tcase_create("ascents"), *basins = tcase_create("basins");

    tcase_add_loop_test(ascents, an_ascent_finds_the_peak_of_an_ill_conditioned_normal_law, 0, 10);
    tcase_add_test(ascents, an_ascent_leaves_a_straight_slope_behind_a_steep_place);
    tcase_add_test(ascents, no_chain_begins_in_the_neck_of_a_funnel);
    tcase_add_test(ascents, few_chains_begin_in_the_neck_of_a_hierarchy);
    tcase_add_loop_test(basins, chains_keep_their_basins, 0, 15);
    tcase_add_loop_test(basins, modes_without_mass_are_refused_and_counted, 0, 2);
    tcase_add_test(basins, modes_that_no_draw_is_near_to_are_told);
    tcase_add_test(basins, modes_that_hardly_any_draw_is_near_to_are_told);
    tcase_add_test(basins, gradients_bound_the_further_ascents);
    tcase_add_loop_test(basins, probes_find_a_narrow_mode, 0, 8);
    tcase_add_test(basins, probes_end_after_many_rounds);
    suite_add_tcase(suite, ascents);
    suite_add_tcase(suite, basins);
    return run_suite_on_grid(suite, argc, argv, N_CHAIN, &search_grid);
}
