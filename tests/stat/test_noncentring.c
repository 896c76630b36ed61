/*
 * Non-centred coordinates: the map has the inverse, the Jacobian and the gradients that it says;
 * the search finds a hierarchy in its draws, and none in those of a Gaussian; and NUTS in the
 * coordinates of a map leaves a funnel as it is, which the twin without the Jacobian does not.
 */
#include "adaptation/noncentring/noncentring_search.h"
#include "adaptation/noncentring/tail_fit.h"
#include "math/tail_map.h"
#include "par/world.h"
#include "posterior/noncentring.h"
#include "support/array_mass.h"
#include "support/behaviour.h"
#include "support/mapped_gradient.h"
#include "support/on_grid.h"

extern const em_sampler_ops em_nuts;

static em_grid *grid;

typedef struct nuts_head {
    em_sampler_options common;
    int64_t max_treedepth;
} nuts_head;

/* ---- a hierarchy: v ~ N(0, 4), mu ~ N(0, 1), x_i ~ N(mu, exp(v)) ---- */

enum { DIM = 6, V = 0, MU = 1, FIRST = 2 };

static const double WIDTH = 2;

static double hierarchy(const double *theta, double *g)
{
    const double v = theta[V], mu = theta[MU], precision = exp(-v);
    double log_density = -0.5 * (v * v / (WIDTH * WIDTH) + mu * mu);

    g[V] = -v / (WIDTH * WIDTH);
    g[MU] = -mu;
    for (int i = FIRST; i < DIM; i++) {
        const double x = theta[i] - mu;
        log_density -= 0.5 * (v + x * x * precision);
        g[V] += 0.5 * (x * x * precision - 1);
        g[MU] += x * precision;
        g[i] = -x * precision;
    }
    return log_density;
}

static const em_noncentring *twin_map; /* the Jacobian of which the twin leaves out */

static em_status add_prior(em_model *base, const em_query *query)
{
    (void)base;
    for (int64_t c = 0; c < query->n_chain; c++) {
        const double *theta = query->theta + c * query->stride;
        double g[DIM];
        query->log_density[c] += hierarchy(theta, g);
        for (int64_t k = 0; twin_map && k < twin_map->n_child; k++) {
            const em_noncentring_row *row = &twin_map->row[twin_map->child[k]];
            if (row->form == EM_SCALE_OF_TAIL) {
                double slope, by;
                em_tail_map(row->degree,
                            em_tail_map_inverse(row->degree,
                                                (theta[(int)row->scale] - row->shift) / row->width),
                            &slope, &by);
                query->log_density[c] -= log(slope);
                g[(int)row->scale] -= by / (row->width * slope);
                continue;
            }
            query->log_density[c] -= row->degree * (theta[(int)row->scale] - row->origin);
            g[(int)row->scale] -= row->degree;
        }
        for (int i = 0; i < DIM; i++)
            query->gradient[c * query->stride + i] += g[i];
    }
    return EM_OK;
}

static const em_model_ops hierarchy_ops = {.name = "hierarchy", .add_prior = add_prior};

static void draw(uint64_t seed, int64_t number, double *theta)
{
    const em_stream stream = {seed, (uint64_t)number, 0, EM_RNG_TEST};
    _Alignas(64) double z[8];

    em_normals(&stream, DIM, z);
    theta[V] = WIDTH * z[V];
    theta[MU] = z[MU];
    for (int i = FIRST; i < DIM; i++)
        theta[i] = z[MU] + exp(0.5 * theta[V]) * z[i];
}

/* A map of four levels, with a long tail, both forms with information and a second log scale, which
 * is not the best one for anything. */
static void open_map(em_noncentring *map)
{
    em_noncentring_row row[DIM] = {{0}};

    row[V] = (em_noncentring_row){.level = 1,
                                  .scale = V,
                                  .form = EM_SCALE_OF_TAIL,
                                  .degree = 0.1,
                                  .width = 1.6,
                                  .shift = 0.3};
    row[MU] = (em_noncentring_row){.level = 2,
                                   .scale = V,
                                   .degree = -0.3,
                                   .origin = 0.2,
                                   .width = 2,
                                   .shift = 0.4,
                                   .location = {-1, -1, -1, -1},
                                   .information = 0.6,
                                   .centre = -0.7,
                                   .form = EM_SCALE_ADDS_VARIANCES};
    for (int i = FIRST; i < DIM; i++)
        row[i] = (em_noncentring_row){.level = 3,
                                      .scale = V,
                                      .degree = 0.4,
                                      .origin = 0.1,
                                      .width = 2,
                                      .shift = 0.2,
                                      .location = {MU, -1, -1, -1},
                                      .coefficient = {0.7}};
    row[FIRST + 1].information = 0.8;
    row[FIRST + 1].centre = 1.3;
    row[FIRST + 2].form = EM_SCALE_LOGISTIC;
    row[FIRST + 1].form = EM_SCALE_SOFTPLUS;
    row[DIM - 1].level = 4;
    row[DIM - 1].information = 0.6;
    row[DIM - 1].centre = -0.4;
    row[DIM - 1].second_scale = FIRST;
    row[DIM - 1].second_degree = -0.2;
    row[DIM - 1].second_origin = 0.3;
    row[DIM - 1].second_width = 1.5;
    row[DIM - 1].location[1] = FIRST;
    row[DIM - 1].coefficient[1] = -0.3;
    ck_assert_int_eq(em_noncentring_create(DIM, map), EM_OK);
    ck_assert_int_eq(em_noncentring_set(map, row), EM_OK);
    ck_assert_int_eq(map->n_child, DIM);
    const em_noncentring_counts n = em_noncentring_count(map);
    ck_assert(n.tailed == 1 && n.curved == 0 && n.scaled == DIM - MU);
    ck_assert_int_eq(map->child[DIM - 1], DIM - 1);
}

/* ---- the map ---- */

/* The log of the determinant of the map's derivative, by central differences and elimination. */
static double log_det(const em_noncentring *map, const double *z)
{
    static const double h = 1e-5;
    double a[DIM][DIM], sum = 0;

    for (int j = 0; j < DIM; j++) {
        double up[DIM], down[DIM];
        memcpy(up, z, sizeof up);
        memcpy(down, z, sizeof down);
        up[j] += h;
        down[j] -= h;
        em_noncentring_to_model(map, up, NULL);
        em_noncentring_to_model(map, down, NULL);
        for (int i = 0; i < DIM; i++)
            a[i][j] = (up[i] - down[i]) / (2 * h);
    }
    for (int j = 0; j < DIM; j++) {
        sum += log(fabs(a[j][j]));
        for (int i = j + 1; i < DIM; i++)
            for (int k = DIM - 1; k >= j; k--)
                a[i][k] -= a[i][j] / a[j][j] * a[j][k];
    }
    return sum;
}

START_TEST(a_map_has_its_inverse_and_its_jacobian)
{
    em_noncentring map;

    open_map(&map);
    for (int64_t n = 0; n < 20; n++) {
        double z[DIM], x[DIM], back[DIM];
        draw(3, n, z);
        z[V] *= n < 10 ? 1 : 15; /* beyond where the log scale is linear */
        memcpy(x, z, sizeof x);
        const double jacobian = em_noncentring_to_model(&map, x, NULL);
        memcpy(back, x, sizeof back);
        ck_assert_double_eq_tol(em_noncentring_from_model(&map, back, NULL), jacobian, 1e-12);
        ck_assert_double_eq_tol(log_det(&map, z), jacobian, 1e-5);
        for (int i = 0; i < DIM; i++)
            ck_assert_double_eq_tol(back[i], z[i], 1e-9 * (1 + fabs(z[i])));
    }
    em_noncentring_release(&map);
}
END_TEST

START_TEST(gradients_are_those_of_the_density)
{
    em_noncentring map;

    open_map(&map);
    for (int64_t n = 0; n < 20; n++) {
        double z[DIM];
        draw(4, n, z);
        check_mapped_gradient(&map, hierarchy, z, 1, 1e-4, 1e-9);
    }
    em_noncentring_release(&map);
}
END_TEST

START_TEST(rows_that_are_no_map_are_refused)
{
    em_noncentring map;
    em_noncentring_row row[DIM];

    open_map(&map);
    for (int k = 0; k < 11; k++) {
        memcpy(row, map.row, sizeof row);
        if (k == 0)
            row[FIRST].location[0] = DIM - 1; /* of a higher level */
        else if (k == 1)
            row[FIRST].scale = DIM;
        else if (k == 2)
            row[FIRST].degree = NAN;
        else if (k == 3)
            row[FIRST].width = 0;
        else if (k == 4)
            row[FIRST].information = -1;
        else if (k == 5)
            row[FIRST].form = EM_SCALE_OF_LOGISTIC_FACTOR + 1;
        else if (k == 6)
            row[DIM - 1].second_scale = DIM - 1;
        else if (k == 7)
            row[V].width = 0;
        else if (k == 8)
            row[V].scale = MU;
        else if (k == 9)
            row[V].level = 2;
        else
            row[DIM - 1].second_width = 0;
        ck_assert_int_eq(em_noncentring_set(&map, row), EM_EDATA);
    }
    em_noncentring_release(&map);
}
END_TEST

/* ---- the search ---- */

enum { N_DRAW = 400 };

START_TEST(the_search_finds_a_hierarchy)
{
    static double sample[N_DRAW][2][DIM];
    em_noncentring_row row[DIM];
    int64_t n_child = 0;

    for (int64_t n = 0; n < N_DRAW; n++) {
        draw((uint64_t)_i + 1, n, sample[n][0]);
        hierarchy(sample[n][0], sample[n][1]);
    }
    const em_samples samples = {N_DRAW, &sample[0][0][0]};
    ck_assert_int_eq(em_noncentring_search(DIM, &samples, NULL, false, row, &n_child), EM_OK);
    ck_assert_int_eq(n_child, DIM - FIRST);
    for (int i = FIRST; i < DIM; i++) {
        ck_assert(row[i].level == 1 && row[i].scale == V);
        ck_assert_double_eq_tol(row[i].degree, 0.5, 0.05);
        ck_assert(fabs(row[i].shift) < 1e-3 && row[i].information < 1e-3);
        ck_assert(row[i].location[0] == MU && row[i].coefficient[0] == 1);
        ck_assert(row[i].location[1] == -1);
    }
}
END_TEST

/* The log of the p-quantile of a gamma law, by bisection; its distribution function is a series. */
static double log_gamma_quantile(double shape, double p)
{
    double low = -200 / shape, high = 5;

    for (int n = 0; n < 200; n++) {
        const double u = 0.5 * (low + high), x = exp(u);
        double term = 1 / shape, sum = term;
        for (int k = 1; k < 400; k++)
            sum += term *= x / (shape + k);
        if (log(sum) + shape * u - x - lgamma(shape) < log(p))
            low = u;
        else
            high = u;
    }
    return low;
}

/* Log gamma variates of this shape, whose mirror image has the tail on the right, beside normal
 * ones. */
enum { N_GAMMA = 2, GAMMA_DIM = 2 * N_GAMMA };

static void draw_log_gamma(uint64_t seed, double shape, double side, double (*sample)[2][GAMMA_DIM])
{
    for (int64_t n = 0; n < N_DRAW; n++) {
        const em_stream stream = {seed, (uint64_t)n, 1, EM_RNG_TEST};
        _Alignas(64) double z[8];
        em_normals(&stream, GAMMA_DIM, z);
        for (int i = 0; i < GAMMA_DIM; i++) {
            sample[n][0][i] = z[i];
            sample[n][1][i] = -z[i];
        }
        for (int i = 0; i < N_GAMMA; i++) {
            const double u = log_gamma_quantile(shape, 0.5 * erfc(-z[i] / sqrt(2)));
            sample[n][0][i] = side * u;
            sample[n][1][i] = side * (shape - exp(u));
        }
    }
}

START_TEST(a_long_tail_is_found)
{
    static double sample[N_DRAW][2][GAMMA_DIM];
    const double side = _i % 2 ? -1 : 1;
    em_noncentring_row row[GAMMA_DIM] = {{0}};
    const em_samples samples = {N_DRAW, &sample[0][0][0]};

    draw_log_gamma((uint64_t)_i + 1, 1.0 / 6, side, sample);
    ck_assert_int_eq(em_tail_fit(GAMMA_DIM, &samples, false, row), EM_OK);
    for (int i = 0; i < GAMMA_DIM; i++) {
        ck_assert_int_eq((int)row[i].level, i < N_GAMMA);
        ck_assert(i >= N_GAMMA || side * row[i].degree > 0.15);
    }
    draw_log_gamma((uint64_t)_i + 1, 3, side, sample); /* has no tail to speak of */
    memset(row, 0, sizeof row);
    ck_assert_int_eq(em_tail_fit(GAMMA_DIM, &samples, false, row), EM_OK);
    for (int i = 0; i < GAMMA_DIM; i++)
        ck_assert(row[i].level == 0);
}
END_TEST

/* ---- the law ---- */

/* The worst deviation of known moments, in Monte Carlo standard errors, of NUTS in the map's
 * coordinates. */
static double worst_z(bool has_jacobian, uint64_t seed, int64_t n_draw)
{
    enum { N = N_CHAIN, N_MOMENT = 6 };
    static const double expected[N_MOMENT] = {0, 4, 0, 1, 1, 0.5}, one[DIM] = {1, 1, 1, 1, 1, 1};
    static const bool none[N];
    const nuts_head options = {{0}, 8};
    em_model model = {.ops = &hierarchy_ops, .dim = DIM};
    double *f = calloc((size_t)(N_MOMENT * N * n_draw), sizeof *f), worst = 0;
    em_posterior *posterior = NULL;
    em_mass *mass = NULL;
    em_noncentring map;
    em_diag *diag;
    kernel_bench b;

    open_map(&map);
    twin_map = has_jacobian ? NULL : &map;
    ck_assert_int_eq(mass_of_array(EM_MASS_DIAG, DIM, one, &mass), EM_OK);
    const kernel_run run = {&em_nuts, &options, mass, NULL, 0.4, seed};
    bench_open(&model, grid, &run, &b);
    const int64_t stride = b.block->stride;
    const em_step_context first = bench_context(&b, 0);
    ck_assert_int_eq(
        em_posterior_create_noncentred(first.posterior, N, DIM, &map, none, &posterior), EM_OK);
    for (int64_t c = 0; c < N; c++) {
        draw(seed, c, b.block->theta + c * stride);
        em_noncentring_from_model(&map, b.block->theta + c * stride, NULL);
    }
    ck_assert_int_eq(em_block_evaluate(posterior, b.block), EM_OK);
    for (int64_t i = 0; i < n_draw; i++) {
        em_step_context context = bench_context(&b, i);
        context.posterior = posterior;
        ck_assert_int_eq(em_nuts.step(b.sampler, &context, b.block), EM_OK);
        for (int64_t c = 0; c < N; c++) {
            double x[DIM];
            memcpy(x, b.block->theta + c * stride, sizeof x);
            em_noncentring_to_model(&map, x, NULL);
            const double z = (x[FIRST] - x[MU]) * exp(-0.5 * x[V]),
                         w = (x[DIM - 1] - x[MU]) * exp(-0.5 * x[V]);
            const double moment[] = {x[V], x[V] * x[V], z, z * z, w * w, x[V] > 0};
            for (int k = 0; k < N_MOMENT; k++)
                f[(k * N + c) * n_draw + i] = moment[k];
        }
    }
    em_diag_create(&diag);
    for (int k = 0; k < N_MOMENT; k++)
        worst = fmax(worst, law_z(diag, N, n_draw, f + k * N * n_draw, expected[k]));
    em_diag_destroy(&diag);
    em_posterior_destroy(&posterior);
    bench_close(&b);
    em_mass_destroy(&mass);
    em_noncentring_release(&map);
    free(f);
    twin_map = NULL;
    return worst;
}

START_TEST(leaves_the_hierarchy_invariant)
{
    ck_assert_double_lt(worst_z(true, (uint64_t)_i + 1, 3000), 4.5);
}
END_TEST

START_TEST(twin_without_the_jacobian_fails)
{
    ck_assert_double_gt(worst_z(false, (uint64_t)_i + 1, 3000), 4.5);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("noncentring");
    TCase *law_case = tcase_create("law"), *map_case = tcase_create("map");

    tcase_set_timeout(law_case, 120);
    tcase_add_loop_test(law_case, leaves_the_hierarchy_invariant, 0, 3);
    tcase_add_loop_test(law_case, twin_without_the_jacobian_fails, 0, 3);
    tcase_add_test(map_case, a_map_has_its_inverse_and_its_jacobian);
    tcase_add_test(map_case, gradients_are_those_of_the_density);
    tcase_add_test(map_case, rows_that_are_no_map_are_refused);
    tcase_add_loop_test(map_case, the_search_finds_a_hierarchy, 0, 5);
    tcase_add_loop_test(map_case, a_long_tail_is_found, 0, 10);
    suite_add_tcase(suite, law_case);
    suite_add_tcase(suite, map_case);
    return run_suite_on_grid(suite, argc, argv, N_CHAIN, &grid);
}
