/*
 * Riemannian kernels on a quartic density with a metric that depends on position: the generalised
 * leapfrog is reversible, preserves volume and has an energy error of order 2 where its implicit
 * equations are solved, and not with one round of them; RHMC then has the law that quadrature
 * gives, and SGR-NPHMC but for a bias of order 2, minibatch noise or not.
 */
#include "base/memory.h"
#include "emass/model/metric.h"
#include "par/world.h"
#include "posterior/tempered.h"
#include "sampler/riemannian/riemann.h"
#include "support/behaviour.h"
#include "support/jacobian.h"
#include "support/model_setup.h"
#include "support/observe.h"
#include "support/on_grid.h"

enum { DIM = 2 };

static em_grid *grid;

/* ---- the density exp(-t^T A t / 2 - t_0^4 / 4) and its metric ---- */

static const gaussian_law gaussian_part = {.dim = DIM, .precision = {{3, 1}, {1, 1.5}}};

static em_status add_prior(em_model *base, const em_query *query)
{
    for (int64_t c = 0; c < query->n_chain; c++) {
        const double t = query->theta[c * query->stride];
        query->log_density[c] -= t * t * t * t / 4;
        query->gradient[c * query->stride] -= t * t * t;
    }
    return law_add_prior(base, query);
}

/* G = [[3 + x^2, c(x)], [c(x), 3/2 + sin(y) 3/10]], c = 1 + tanh(x) 3/10 */
static em_status add_metric(em_model *model, bool prior, const em_rows *rows, const double *theta,
                            double *metric, double *derivative)
{
    const double x = theta[0], y = theta[1];

    (void)model, (void)rows;
    if (!prior)
        return EM_OK;
    metric[0] += 3 + x * x;
    metric[2] += 1 + 0.3 * tanh(x);
    metric[3] += 1.5 + 0.3 * sin(y);
    if (derivative) {
        derivative[0] += 2 * x;
        derivative[2] += 0.3 / (cosh(x) * cosh(x));
        derivative[4 + 3] += 0.3 * cos(y);
    }
    return EM_OK;
}

static const em_model_ops quartic_ops = {.name = "quartic",
                                         .add_prior = add_prior,
                                         .add_likelihood = noisy_add_likelihood,
                                         .metric = &(const em_model_metric){.add = add_metric}};

/* E x^2, E x y, E y^2 by the rectangle rule, which is exact to rounding for such a function. */
static void quadrature(double *moment)
{
    double sum[3] = {0}, norm = 0;

    for (double x = -6; x < 6; x += 0.02)
        for (double y = -6; y < 6; y += 0.02) {
            const double p = exp(-(3 * x * x + 2 * x * y + 1.5 * y * y) / 2 - x * x * x * x / 4);
            sum[0] += p * x * x;
            sum[1] += p * x * y;
            sum[2] += p * y * y;
            norm += p;
        }
    for (int i = 0; i < 3; i++)
        moment[i] = sum[i] / norm;
}

typedef struct fixture {
    noisy_model model;
    em_mass *mass; /* not used by the kernels */
    em_config *config;
    kernel_run run;
} fixture;

/* With minibatch noise of v times about the mean of G, [[3.3, 1], [1, 1.5]], or none. */
static void open_fixture(const char *sampler, double v, uint64_t seed, fixture *f)
{
    const matrix root = {DIM, {{sqrt(3.3 * v)}, {sqrt(v / 3.3), sqrt((1.5 - 1 / 3.3) * v)}}};
    char text[256];

    em_mass_identity(EM_MASS_DIAG, DIM, &f->mass);
    f->model = noisy_model_of(&gaussian_part, 0);
    f->model.law.base.ops = &quartic_ops;
    set_noise(&f->model, &root);
    snprintf(text, sizeof text, "%s, replacement: true", sampler);
    f->run = configured(text, f->mass, NULL, seed, &f->config);
}

static void close_fixture(fixture *f)
{
    em_mass_destroy(&f->mass);
    em_config_destroy(&f->config);
}

/* ---- the metric between the model's and that of a reference ---- */

/* beta G + (1 - beta) diag(precision), and its derivative: the slope of the metric itself, which
 * that of the model alone is not. */
START_TEST(metric_of_a_tempered_posterior)
{
    const double precision[DIM] = {0.25, 4}, theta[DIM] = {0.7, -1.2}, h = 1e-5;
    const em_temperature at = {.beta = 0.3, .precision = precision};
    double whole[DIM * DIM], metric[DIM * DIM], slope[DIM * DIM * DIM],
        whole_slope[DIM * DIM * DIM];
    em_posterior *posterior, *tempered;
    fixture f;

    open_fixture("name: rhmc", 0, 1, &f);
    ck_assert_int_eq(em_posterior_create(&f.model.law.base, grid, 1, &posterior), EM_OK);
    ck_assert_int_eq(em_posterior_create_tempered(posterior, 1, 0, &at, &tempered), EM_OK);
    ck_assert_int_eq(em_posterior_metric(posterior, 0, theta, whole, whole_slope), EM_OK);
    ck_assert_int_eq(em_posterior_metric(tempered, 0, theta, metric, slope), EM_OK);
    for (int i = 0; i < DIM * DIM; i++)
        ck_assert_double_eq_tol(
            metric[i], 0.3 * whole[i] + (i % (DIM + 1) == 0 ? 0.7 * precision[i / DIM] : 0), 1e-14);
    for (int k = 0; k < DIM; k++) {
        double up[DIM * DIM], down[DIM * DIM], moved[DIM] = {theta[0], theta[1]};
        moved[k] = theta[k] + h;
        ck_assert_int_eq(em_posterior_metric(tempered, 0, moved, up, NULL), EM_OK);
        moved[k] = theta[k] - h;
        ck_assert_int_eq(em_posterior_metric(tempered, 0, moved, down, NULL), EM_OK);
        for (int i = 0; i < DIM * DIM; i++)
            ck_assert_double_eq_tol(slope[k * DIM * DIM + i], (up[i] - down[i]) / (2 * h), 1e-8);
    }
    ck_assert_double_gt(fabs(whole_slope[0] - slope[0]), 0.5); /* the twin */
    em_posterior_destroy(&tempered);
    em_posterior_destroy(&posterior);
    close_fixture(&f);
}
END_TEST

/* ---- the integrator ---- */

typedef struct leapfrog {
    fixture fixture;
    em_posterior *posterior;
    em_owner memory; /* of `riemann` */
    em_riemann *riemann;
    double eps;
} leapfrog;

static void open_path(bool diagonal, int64_t rounds, double eps, leapfrog *p)
{
    open_fixture("name: rhmc", 0, 1, &p->fixture);
    ck_assert_int_eq(em_posterior_create(&p->fixture.model.law.base, grid, 1, &p->posterior),
                     EM_OK);
    const em_riemann_options options = {diagonal ? EM_RIEMANN_DIAGONAL : EM_RIEMANN_FULL, rounds};
    p->memory = (em_owner){NULL};
    ck_assert_int_eq(em_riemann_create(&p->memory, DIM, &options, &p->riemann), EM_OK);
    p->eps = eps;
}

static void close_path(leapfrog *p)
{
    em_release_owned(&p->memory);
    em_posterior_destroy(&p->posterior);
    close_fixture(&p->fixture);
}

/* n steps from z = (theta, p); returns the energy error. */
static double travel(leapfrog *path, int64_t n_step, double *z)
{
    em_riemann *r = path->riemann;
    const em_query query = {.n_chain = 1,
                            .stride = EM_LANES,
                            .chain = &(int64_t){0},
                            .theta = r->theta,
                            .log_density = &r->log_density,
                            .gradient = r->gradient};

    memcpy(r->theta, z, DIM * sizeof *z);
    memcpy(r->momentum, z + DIM, DIM * sizeof *z);
    em_posterior_evaluate(path->posterior, &query);
    ck_assert_int_eq(em_riemann_set_position(r, path->posterior, 0, r->theta), EM_OK);
    const double before = -r->log_density + r->half_log_determinant + em_riemann_kinetic(r);
    for (int64_t k = 0; k < n_step; k++) {
        ck_assert_int_eq(em_riemann_advance(r, path->eps), EM_OK);
        em_posterior_evaluate(path->posterior, &query);
        ck_assert_int_eq(em_riemann_finish(r, path->eps), EM_OK);
    }
    memcpy(z, r->theta, DIM * sizeof *z);
    memcpy(z + DIM, r->momentum, DIM * sizeof *z);
    return -r->log_density + r->half_log_determinant + em_riemann_kinetic(r) - before;
}

static const double starts[][2 * DIM] = {
    {0.4, -0.3, 0.5, 0.2}, {-0.7, 0.9, 1.2, -1.0}, {0.1, 0.5, -2.0, 1.5}, {0.9, -1.1, 0.3, -0.8}};
enum { N_START = 4 };

/* Mean |energy error| at time 1. */
static double energy_error(bool diagonal, int64_t rounds, double eps)
{
    double total = 0;
    leapfrog path;

    open_path(diagonal, rounds, eps, &path);
    for (int i = 0; i < N_START; i++) {
        double z[2 * DIM];
        memcpy(z, starts[i], sizeof z);
        total += fabs(travel(&path, llround(1 / eps), z)) / N_START;
    }
    close_path(&path);
    return total;
}

START_TEST(energy_error_is_of_order_2)
{
    const bool diagonal = _i;
    const int64_t converged = INT64_MIN;

    ck_assert_double_eq_tol(
        order_of(energy_error(diagonal, converged, 0.05), energy_error(diagonal, converged, 0.025)),
        2, 0.1);
    ck_assert_double_eq_tol(
        order_of(energy_error(diagonal, 1, 0.05), energy_error(diagonal, 1, 0.025)), 1, 0.2);
}
END_TEST

/* How far 10 steps there and back end from where they began. */
static double return_error(bool diagonal, int64_t rounds)
{
    double worst = 0;
    leapfrog path;

    open_path(diagonal, rounds, 0.1, &path);
    for (int i = 0; i < N_START; i++) {
        double z[2 * DIM];
        memcpy(z, starts[i], sizeof z);
        for (int way = 0; way < 2; way++) {
            travel(&path, 10, z);
            z[DIM] *= -1;
            z[DIM + 1] *= -1;
        }
        for (int j = 0; j < 2 * DIM; j++)
            worst = fmax(worst, fabs(z[j] - starts[i][j]));
    }
    close_path(&path);
    return worst;
}

START_TEST(leapfrog_is_reversible)
{
    ck_assert_double_lt(return_error(_i, INT64_MIN), 1e-10);
    ck_assert_double_gt(return_error(_i, 1), 1e-4);
}
END_TEST

static void one_step(void *self, const double *z, double *out)
{
    memcpy(out, z, 2 * DIM * sizeof *z);
    travel(self, 1, out);
}

static double volume(bool diagonal, int64_t rounds, const double *z)
{
    leapfrog path;

    open_path(diagonal, rounds, 0.2, &path);
    const double det = jacobian(one_step, &path, 2 * DIM, z);
    close_path(&path);
    return det;
}

START_TEST(leapfrog_preserves_volume)
{
    for (int i = 0; i < N_START; i++) {
        ck_assert_double_eq_tol(volume(_i, INT64_MIN, starts[i]), 1, 1e-7);
        ck_assert_double_gt(fabs(volume(_i, 1, starts[i]) - 1), 1e-5);
    }
}
END_TEST

/* ---- where there is no metric ---- */

static em_status add_metric_with_a_hole(em_model *model, bool prior, const em_rows *rows,
                                        const double *theta, double *metric, double *derivative)
{
    const em_status status = add_metric(model, prior, rows, theta, metric, derivative);

    if (prior && theta[0] > 2)
        metric[0] = -1;
    return status;
}

static const em_model_ops holed_ops = {.name = "holed",
                                       .add_prior = add_prior,
                                       .add_likelihood = noisy_add_likelihood,
                                       .metric =
                                           &(const em_model_metric){.add = add_metric_with_a_hole}};

/* Energy and momentum of chain 3, which begins in the hole, after an iteration in a block of the
 * chains from `first` to 3. */
static void in_the_hole(int64_t first, double *energy, double *momentum)
{
    fixture f;
    kernel_bench b;

    open_fixture("name: rhmc", 0, 1, &f);
    f.model.law.base.ops = &holed_ops;
    bench_open(&f.model.law.base, grid, &f.run, &b);
    number_chains(b.block, first);
    b.block->n_chain = 4 - first;
    start_anywhere(b.block, first, &b);
    b.block->theta[(3 - first) * b.block->stride] = 2.5;
    bench_start(&b);
    iterate_bench(&b, 1);
    *energy = b.block->stat[EM_STAT_ENERGY][3 - first];
    memcpy(momentum, b.block->momentum + (3 - first) * b.block->stride, DIM * sizeof *momentum);
    ck_assert_double_eq(b.block->stat[EM_STAT_DIVERGING][3 - first], 1);
    b.block->n_chain = N_CHAIN;
    bench_close(&b);
    close_fixture(&f);
}

/* Its energy is that of its position, whoever moved before it. */
START_TEST(without_a_metric_a_chain_is_its_own)
{
    double alone, together, p_alone[DIM], p_together[DIM];

    in_the_hole(3, &alone, p_alone);
    in_the_hole(1, &together, p_together);
    ck_assert(isfinite(alone));
    ck_assert_double_eq(alone, together);
    ck_assert_mem_eq(p_alone, p_together, sizeof p_alone);
}
END_TEST

/* ---- the laws ---- */

static observable *const moment[3] = {moment_00, moment_01, moment_11};

static double law_deviation(const char *sampler, double v, int64_t n_draw, uint64_t seed)
{
    double expected[3];
    em_diagnosis found[3];
    fixture f;

    quadrature(expected);
    open_fixture(sampler, v, seed, &f);
    observe(&f.model, grid, &f.run, n_draw, 3, moment, found);
    close_fixture(&f);
    return worst_deviation(3, found, expected);
}

#define RHMC "name: rhmc, step_size: 0.6, leapfrog_steps: 3, jitter: false"
START_TEST(rhmc_has_the_law)
{
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_lt(law_deviation(RHMC, 0, 8000, seed), 4);
    ck_assert_double_lt(law_deviation(RHMC ", metric: diagonal", 0, 8000, seed), 4);
}
END_TEST

START_TEST(rhmc_with_one_round_fails)
{
    ck_assert_double_gt(law_deviation(RHMC ", fixed_point: 1", 0, 12000, (uint64_t)_i + 1), 4);
}
END_TEST

static double friction(const em_block *block, const gaussian_law *unused, int64_t c)
{
    (void)unused;
    return block->extra[c] / 2;
}

static double friction_squared(const em_block *block, const gaussian_law *unused, int64_t c)
{
    return pow(friction(block, unused, c), 2);
}

/* p^T G^-1 p / D, where the part c of G off its diagonal is taken `whole` times. */
static double temperature_in(const em_block *block, int64_t c, double whole)
{
    const double *p = block->momentum + c * block->stride;
    double G[DIM * DIM] = {0};

    add_metric(NULL, true, NULL, block->theta + c * block->stride, G, NULL);
    G[2] *= whole;
    return (p[0] * p[0] * G[3] - 2 * p[0] * p[1] * G[2] + p[1] * p[1] * G[0]) /
           (G[0] * G[3] - G[2] * G[2]) / DIM;
}

static double temperature(const em_block *block, const gaussian_law *unused, int64_t c)
{
    (void)unused;
    return temperature_in(block, c, 1);
}

static double temperature_diagonal(const em_block *block, const gaussian_law *unused, int64_t c)
{
    (void)unused;
    return temperature_in(block, c, 0);
}

/* theta, p and q = 2 friction ~ N(2, 2), in standard errors. */
static double thermal_deviation(const char *sampler, observable *heat, uint64_t seed)
{
    enum { N = 6 };
    observable *const what[N] = {moment_00, moment_01, moment_11, friction, friction_squared, heat};
    double expected[N] = {0, 0, 0, 1, 1.5, 1};
    em_diagnosis found[N];
    fixture f;

    quadrature(expected);
    open_fixture(sampler, 0, seed, &f);
    observe(&f.model, grid, &f.run, 4000, N, what, found);
    close_fixture(&f);
    return worst_deviation(N, found, expected);
}

/* Step 0.1 has a bias below 0.01, and the standard errors are above that. */
#define SGRNPHMC "name: sgrnphmc, leapfrog_steps: 4"
START_TEST(sgrnphmc_has_the_law_at_a_small_step)
{
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_lt(
        thermal_deviation(SGRNPHMC ", thermostat_mass: 2, step_size: 0.1", temperature, seed), 4);
    ck_assert_double_lt(thermal_deviation(SGRNPHMC
                                          ", thermostat_mass: 2, step_size: 0.1, metric: diagonal",
                                          temperature_diagonal, seed),
                        4);
}
END_TEST

/* Noise of about 6 G heats by eps/2 6 = 15 % where the thermostat is frozen; what it cannot
 * absorb, because V is not proportional to G, is below a standard error. */
START_TEST(sgrnphmc_absorbs_noise)
{
#define NOISY SGRNPHMC ", step_size: 0.05, thermostat_mass: "
    ck_assert_double_lt(law_deviation(NOISY "2", 6, 5000, (uint64_t)_i + 1), 4);
    ck_assert_double_gt(law_deviation(NOISY "1e300", 6, 5000, (uint64_t)_i + 1), 4);
}
END_TEST

static double bias(double eps, int64_t n_draw)
{
    double expected[3];
    char text[128];
    observable *const what[] = {moment_11};
    em_diagnosis found;
    fixture f;

    quadrature(expected);
    snprintf(text, sizeof text, SGRNPHMC ", thermostat_mass: 2, step_size: %g", eps);
    open_fixture(text, 0, 1, &f);
    observe(&f.model, grid, &f.run, n_draw, 1, what, &found);
    close_fixture(&f);
    return fabs(found.mean - expected[2]);
}

/* About 0.11 and 0.03, with standard errors of 0.0045 and 0.003: 0.15 in the order. */
START_TEST(sgrnphmc_bias_is_of_order_2)
{
    ck_assert_double_eq_tol(order_of(bias(0.5, 10000), bias(0.25, 40000)), 2, 0.6);
}
END_TEST

static const char *const kernels[] = {RHMC, RHMC ", metric: diagonal, fixed_point: 2",
                                      SGRNPHMC ", step_size: 0.1",
                                      SGRNPHMC ", step_size: 0.1, metric: diagonal"};
enum { N_KERNEL = sizeof kernels / sizeof *kernels };

START_TEST(kernel_behaves)
{
    fixture f;

    open_fixture(kernels[_i], 0.5, 1, &f);
    check_behaviour(&f.model.law.base, grid, &f.run);
    close_fixture(&f);
}
END_TEST

/* ---- the metrics of models ---- */

/* dG / dtheta_k against central differences, relative to the largest element. */
static double metric_error(em_posterior *posterior, int64_t n, double *theta)
{
    enum { MOST = 4 };
    const double delta = 1e-5;
    double plus[MOST * MOST], minus[MOST * MOST], metric[MOST * MOST];
    double derivative[MOST * MOST * MOST], worst = 0, largest = 0;

    ck_assert_int_eq(em_posterior_metric(posterior, 0, theta, metric, derivative), EM_OK);
    for (int64_t k = 0; k < n; k++) {
        const double at = theta[k];
        theta[k] = at + delta;
        em_posterior_metric(posterior, 0, theta, plus, NULL);
        theta[k] = at - delta;
        em_posterior_metric(posterior, 0, theta, minus, NULL);
        theta[k] = at;
        for (int64_t i = 0; i < n * n; i++) {
            const double slope = (plus[i] - minus[i]) / (2 * delta);
            worst = fmax(worst, fabs(derivative[k * n * n + i] - slope));
            largest = fmax(largest, fabs(metric[i]));
        }
    }
    return worst / largest;
}

/* Of all parameters, and of those from `from` on alone, where the others are held. */
static void check_metric(const char *name, double *theta, int64_t from)
{
    em_posterior *all, *some;
    setup s;

    ck_assert_int_eq(try_setup(name, NULL, 0, 1, &s), EM_OK);
    const int64_t dim = s.model->dim;
    const em_parameters block = {.name = "some", .first = from, .count = dim - from};
    _Alignas(64) double own[EM_LANES] = {0};
    double whole[16], part[16];
    ck_assert_int_eq(em_posterior_create(s.model, grid, 1, &all), EM_OK);
    ck_assert_int_eq(em_posterior_create_part(all, &block, 1, 0, theta, &some), EM_OK);
    memcpy(own, theta + from, (size_t)block.count * sizeof *own);
    ck_assert_double_lt(metric_error(all, dim, theta), 1e-8);
    ck_assert_double_lt(metric_error(some, block.count, own), 1e-8);
    ck_assert_int_eq(em_posterior_metric(all, 0, theta, whole, NULL), EM_OK);
    ck_assert_int_eq(em_posterior_metric(some, 0, own, part, NULL), EM_OK);
    for (int64_t i = 0; i < block.count; i++)
        for (int64_t j = 0; j < block.count; j++)
            ck_assert_double_eq(part[i * block.count + j], whole[(from + i) * dim + from + j]);
    em_posterior_destroy(&some);
    em_posterior_destroy(&all);
    teardown(&s);
}

START_TEST(models_have_derivatives_of_their_metric)
{
    _Alignas(64) double theta[EM_LANES] = {0.3, -0.2};

    check_metric("logistic", theta, 0);
    check_metric("normal_wishart", theta, 1);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("rhmc");
    TCase *path_case = tcase_create("path"), *law_case = tcase_create("law");

    tcase_add_loop_test(path_case, energy_error_is_of_order_2, 0, 2);
    tcase_add_loop_test(path_case, leapfrog_is_reversible, 0, 2);
    tcase_add_loop_test(path_case, leapfrog_preserves_volume, 0, 2);
    tcase_add_test(path_case, metric_of_a_tempered_posterior);
    tcase_set_timeout(law_case, 60);
    tcase_add_test(law_case, without_a_metric_a_chain_is_its_own);
    tcase_add_loop_test(law_case, rhmc_has_the_law, 0, 4);
    tcase_add_loop_test(law_case, rhmc_with_one_round_fails, 0, 4);
    tcase_add_loop_test(law_case, sgrnphmc_has_the_law_at_a_small_step, 0, 4);
    tcase_add_loop_test(law_case, sgrnphmc_absorbs_noise, 0, 4);
    tcase_add_test(law_case, sgrnphmc_bias_is_of_order_2);
    tcase_add_loop_test(law_case, kernel_behaves, 0, N_KERNEL);
    tcase_add_test(law_case, models_have_derivatives_of_their_metric);
    suite_add_tcase(suite, path_case);
    suite_add_tcase(suite, law_case);
    return run_suite_on_grid(suite, argc, argv, 8, &grid);
}
