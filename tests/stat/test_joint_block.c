/*
 * Rows of a map that are mapped together, for a local linear trend with normal data. The density of
 * z is that of independent normal variates, whatever the log scales are. The map has its inverse
 * and its gradients. The search finds it from draws and gradients exactly, and without exact
 * gradients it does not find the scale of the data.
 */
#include "adaptation/noncentring/noncentring_search.h"
#include "math/rng.h"
#include "support/mapped_gradient.h"
#include "support/tap.h"

#include <math.h>
#include <string.h>

/* mu_t ~ N(mu_(t-1) + d_(t-1), e^(2 u)), d_t ~ N(0.9 d_(t-1), e^(-v)), mu_0 ~ N(1, 9), d_0 ~ N(0,
 * 1), data y_t ~ N(mu_t, e^(2 w)). Parameters: u, v, w, then mu_t and d_t for t = 0 .. STEPS. */
enum { SCALES = 3, STEPS = 6, DIM = SCALES + 2 * (STEPS + 1), N_DRAW = 400 };

static const double keeps = 0.9, first_mean = 1, first_sd = 3;

static double data_of(int t)
{
    return sin(t) + 0.2 * t;
}

static int64_t mu(int t)
{
    return SCALES + 2 * t;
}

static int64_t trend(int t)
{
    return mu(t) + 1;
}

/* The log density of mu and d given the scales, and its gradient. */
static double density(const double *x, double *g)
{
    const double of_mu = exp(-2 * x[0]), of_trend = exp(x[1]), of_data = exp(-2 * x[2]);
    const double first = (x[mu(0)] - first_mean) / first_sd;
    double log_density = -0.5 * (first * first + x[trend(0)] * x[trend(0)]);

    memset(g, 0, DIM * sizeof *g);
    g[mu(0)] = -first / first_sd;
    g[trend(0)] = -x[trend(0)];
    for (int t = 0; t <= STEPS; t++) {
        const double c = x[mu(t)] - data_of(t);
        log_density -= 0.5 * of_data * c * c + x[2];
        g[2] += of_data * c * c - 1;
        g[mu(t)] -= of_data * c;
    }
    for (int t = 1; t <= STEPS; t++) {
        const double a = x[mu(t)] - x[mu(t - 1)] - x[trend(t - 1)];
        const double b = x[trend(t)] - keeps * x[trend(t - 1)];
        log_density += -0.5 * (of_mu * a * a + of_trend * b * b) - x[0] + 0.5 * x[1];
        g[0] += of_mu * a * a - 1;
        g[1] += 0.5 - 0.5 * of_trend * b * b;
        g[mu(t)] -= of_mu * a;
        g[mu(t - 1)] += of_mu * a;
        g[trend(t - 1)] += of_mu * a + keeps * of_trend * b;
        g[trend(t)] -= of_trend * b;
    }
    return log_density;
}

static const em_noncentring_row empty_row = {
    .level = 1, .width = 8, .location = {-1, -1, -1, -1}, .form = EM_SCALE_JOINT};

static void write_rows(em_noncentring_row *row)
{
    memset(row, 0, DIM * sizeof *row);
    for (int t = 0; t <= STEPS; t++) {
        em_noncentring_row *of_mu = &row[mu(t)], *of_trend = &row[trend(t)];
        *of_mu = *of_trend = empty_row;
        of_mu->information = 1;
        of_mu->centre = data_of(t);
        of_mu->second_scale = 2;
        of_mu->second_degree = 1;
        of_mu->second_width = 8;
        if (t == 0) { /* constant laws */
            of_mu->width = first_sd;
            of_mu->shift = first_mean;
            of_trend->width = 1;
            continue;
        }
        of_mu->degree = 1;
        of_mu->location[0] = (double)mu(t - 1);
        of_mu->location[1] = (double)trend(t - 1);
        of_mu->coefficient[0] = of_mu->coefficient[1] = 1;
        of_trend->scale = 1;
        of_trend->degree = -0.5;
        of_trend->location[0] = (double)trend(t - 1);
        of_trend->coefficient[0] = keeps;
    }
    em_noncentring_set_levels(DIM, row);
}

static void open_map(const em_noncentring_row *row, em_noncentring *map)
{
    ck_assert_int_eq(em_noncentring_create(DIM, map), EM_OK);
    ck_assert_int_eq(em_noncentring_set(map, row), EM_OK);
    ck_assert_int_eq((int)em_noncentring_count(map).scaled, DIM - SCALES);
}

/* Normal variates, with log scales of this standard deviation. */
static void draw(uint64_t seed, uint64_t n, double spread, double *z)
{
    const em_stream stream = {seed, n, 0, EM_RNG_TEST};
    _Alignas(64) double drawn[DIM + 8];

    em_normals(&stream, DIM, drawn);
    memcpy(z, drawn, DIM * sizeof *z);
    for (int i = 0; i < SCALES; i++)
        z[i] *= spread;
}

static double square(const double *z)
{
    double sum = 0;

    for (int i = SCALES; i < DIM; i++)
        sum += z[i] * z[i];
    return sum;
}

/* The largest difference, over pairs of z with equal log scales, of the log density and that of
 * independent normal variates. */
static double worst_departure(const em_noncentring *map)
{
    double worst = 0;

    for (uint64_t n = 0; n < 50; n++) {
        double z[DIM], other[DIM];
        draw(1, n, 3, z); /* from the neck of the funnel to its mouth */
        draw(2, n, 3, other);
        memcpy(other, z, SCALES * sizeof *z);
        const double here = mapped_density(map, density, z) + 0.5 * square(z);
        const double there = mapped_density(map, density, other) + 0.5 * square(other);
        worst = fmax(worst, fabs(here - there) / (1 + fabs(here)));
    }
    return worst;
}

/* The same, with `factor` times the precision of one of the data. */
static double departure_with(double factor)
{
    em_noncentring_row row[DIM];
    em_noncentring map;

    write_rows(row);
    row[mu(3)].information *= factor;
    open_map(row, &map);
    const double worst = worst_departure(&map);
    em_noncentring_release(&map);
    return worst;
}

START_TEST(members_are_independent_normal_variates)
{
    ck_assert_double_lt(departure_with(1), 1e-6);
}
END_TEST

/* The twin: a precision of data that is a hundredth too large. */
START_TEST(twin_with_other_data_fails)
{
    ck_assert_double_gt(departure_with(1.01), 1e-3);
}
END_TEST

START_TEST(the_map_has_its_inverse_and_its_gradients)
{
    em_noncentring_row row[DIM];
    em_noncentring map;

    write_rows(row);
    open_map(row, &map);
    for (uint64_t n = 0; n < 50; n++) {
        double z[DIM], x[DIM], back[DIM], of_x[DIM], size = 1;
        draw(3, n, 2, z);
        memcpy(x, z, sizeof x);
        const double log_jacobian = em_noncentring_to_model(&map, x, NULL);
        memcpy(back, x, sizeof back);
        const double of_inverse = em_noncentring_from_model(&map, back, NULL);
        ck_assert_double_eq_tol(of_inverse, log_jacobian, 1e-9 * (1 + fabs(log_jacobian)));
        for (int i = 0; i < DIM; i++)
            ck_assert_double_eq_tol(back[i], z[i], 1e-6 * (1 + fabs(z[i])));
        density(x, of_x);
        for (int i = 0; i < SCALES; i++)
            size += fabs(of_x[i]);
        check_mapped_gradient(&map, density, z, size, 1e-5, 1e-7);
    }
    em_noncentring_release(&map);
}
END_TEST

/* With precisions so far apart that rounding makes pivots negative. */
START_TEST(the_map_is_finite_far_from_the_posterior)
{
    em_noncentring_row row[DIM];
    em_noncentring map;

    write_rows(row);
    open_map(row, &map);
    for (uint64_t n = 0; n < 2000; n++) {
        double z[DIM], x[DIM], g[DIM];
        draw(4, n, 5, z);
        memcpy(x, z, sizeof x);
        ck_assert(isfinite(em_noncentring_to_model(&map, x, map.at)));
        memset(g, 0, sizeof g);
        em_noncentring_pull(&map, z, map.at, g);
        for (int i = 0; i < DIM; i++)
            ck_assert(isfinite(x[i]) && isfinite(g[i]));
    }
    em_noncentring_release(&map);
}
END_TEST

/* Searches draws whose gradients have a noise of this share. */
static void search(uint64_t seed, double noise, em_noncentring_row *found)
{
    static double sample[N_DRAW][2][DIM];
    const em_samples samples = {N_DRAW, &sample[0][0][0]};
    em_noncentring_row row[DIM];
    em_normal_prior prior[DIM] = {{0}};
    em_noncentring map;
    int64_t n_child;

    write_rows(row);
    open_map(row, &map);
    for (uint64_t n = 0; n < N_DRAW; n++) {
        double *x = sample[n][0], *g = sample[n][1], other[DIM];
        draw(seed, n, 0.5, x);
        em_noncentring_to_model(&map, x, NULL);
        density(x, g);
        draw(seed + 1, n, 1, other);
        for (int i = 0; i < DIM; i++)
            g[i] *= 1 + noise * other[i];
    }
    em_noncentring_release(&map);
    for (int i = SCALES + 2; i < DIM; i++) {
        prior[i] =
            (em_normal_prior){.precision = 1, .scale = row[i].scale, .degree = row[i].degree};
        memcpy(prior[i].location, row[i].location, sizeof prior[i].location);
        memcpy(prior[i].coefficient, row[i].coefficient, sizeof prior[i].coefficient);
    }
    ck_assert_int_eq(em_noncentring_search(DIM, &samples, prior, true, found, &n_child), EM_OK);
}

START_TEST(the_search_finds_the_block)
{
    em_noncentring_row found[DIM];
    em_noncentring map;

    search((uint64_t)_i + 10, 0, found);
    for (int i = SCALES; i < DIM; i++)
        ck_assert_int_eq((int)found[i].form, EM_SCALE_JOINT);
    open_map(found, &map);
    ck_assert_double_lt(worst_departure(&map), 1e-5);
    em_noncentring_release(&map);
}
END_TEST

START_TEST(twin_without_exact_gradients_has_no_scale_of_data)
{
    em_noncentring_row found[DIM];

    search((uint64_t)_i + 10, 0.01, found);
    for (int i = 0; i < DIM; i++)
        ck_assert(found[i].form != EM_SCALE_JOINT || found[i].second_degree == 0);
}
END_TEST

START_TEST(rows_that_are_no_block_are_refused)
{
    em_noncentring_row row[DIM];
    em_noncentring map;

    ck_assert_int_eq(em_noncentring_create(DIM, &map), EM_OK);
    write_rows(row);
    row[mu(2)].level++; /* a block has one level */
    ck_assert_int_eq(em_noncentring_set(&map, row), EM_EDATA);
    write_rows(row);
    row[mu(2)].scale = (double)mu(1); /* a scale is outside the block */
    ck_assert_int_eq(em_noncentring_set(&map, row), EM_EDATA);
    write_rows(row);
    ck_assert_int_eq(em_noncentring_set(&map, row), EM_OK);
    em_noncentring_release(&map);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("joint_block");

    tcase_add_test(tests, members_are_independent_normal_variates);
    tcase_add_test(tests, twin_with_other_data_fails);
    tcase_add_test(tests, the_map_has_its_inverse_and_its_gradients);
    tcase_add_test(tests, the_map_is_finite_far_from_the_posterior);
    tcase_add_loop_test(tests, the_search_finds_the_block, 0, 10);
    tcase_add_loop_test(tests, twin_without_exact_gradients_has_no_scale_of_data, 0, 10);
    tcase_add_test(tests, rows_that_are_no_block_are_refused);
    return run_case(tests, CK_FORK);
}
