/*
 * Thermostats: with the thermostat frozen, the exact law of each integrator; alive, its law at a
 * small step, the order of its bias, and what minibatch noise it absorbs. Twins with a wrong sign,
 * half the noise or no thermostat fail the same bounds.
 */
#include "par/world.h"
#include "support/array_mass.h"
#include "support/behaviour.h"
#include "support/observe.h"
#include "support/on_grid.h"

enum { DIM = 2, DRAWS = 8000 };

enum { SHORT = 403 };

static em_grid *grid;

static const gaussian_law law = {
    .dim = DIM, .mean = {1, -2}, .precision = {{2.0, -1.2}, {-1.2, 1.5}}};
static const matrix M = {DIM, {{1.5, 0.6}, {0.6, 0.7}}};

/* ---- a kernel, its mass and the noise of its gradients ---- */

/* V is nothing, 3 M, L diag(6, 0.5) L^T or diag(6, 0.5). */
enum noise { NONE, PROPORTIONAL, PER_DIRECTION, ANISOTROPIC };

typedef struct fixture {
    noisy_model model;
    matrix V;
    em_mass *mass;
    em_config *config;
    kernel_run run;
} fixture;

static matrix root_of_noise(enum noise noise, const em_mass *mass)
{
    const matrix L = factor_of(mass), some = {DIM, {{sqrt(6)}, {0, sqrt(0.5)}}};

    switch (noise) {
    case PROPORTIONAL:
        return sum(sqrt(3), &L, 0, &L);
    case PER_DIRECTION:
        return product(&L, &some);
    case ANISOTROPIC:
        return some;
    default:
        return (matrix){.n = DIM};
    }
}

static void open_fixture(const char *sampler, enum noise noise, uint64_t seed, fixture *f)
{
    const matrix W = inverse_of(&M);
    char text[256];
    double w[DIM * DIM];

    pack_matrix(&W, w);
    ck_assert_int_eq(mass_of_array(EM_MASS_DENSE, DIM, w, &f->mass), EM_OK);
    f->model = noisy_model_of(&law, 0);
    const matrix root = root_of_noise(noise, f->mass);
    set_noise(&f->model, &root);
    f->V = noisy_covariance(&f->model, true);
    snprintf(text, sizeof text, "%s, replacement: true", sampler);
    f->run = configured(text, f->mass, NULL, seed, &f->config);
}

static void close_fixture(fixture *f)
{
    em_mass_destroy(&f->mass);
    em_config_destroy(&f->config);
}

static const char *const kernels[] = {
    "name: sgnht, step_size: 0.1",
    "name: sgnht, integrator: euler, step_size: 0.05",
    "name: sgnht, paper: true, step_size: 0.05",
    "name: msgnht, step_size: 0.1",
    "name: msgnht, integrator: euler, step_size: 0.05",
    "name: sgnphmc, step_size: 0.1",
    "name: sgnphmc, thermostat_diffusion: 1, step_size: 0.1",
    "name: sgnphmc, paper: true, step_size: 0.05",
};
enum { N_KERNEL = sizeof kernels / sizeof *kernels };

/* ---- frozen thermostats: xi = a ---- */

enum integrator { EULER, SPLITTING, PRINTED };

typedef struct reference {
    enum integrator integrator;
    double eps, a;
    matrix A, W;
} reference;

/* One inner step of EQUATIONS 9 with xi = a; x = (theta - mean, p), noise of (g, p). */
static void frozen_step(const void *self, const double *x, const double *xi, double *out)
{
    const reference *r = self;
    const bool splits = r->integrator == SPLITTING;
    const double eps = r->eps, h = splits ? eps / 2 : eps;
    const double damp = splits ? exp(-r->a * eps / 2) : 1;
    double p[DIM] = {0}, velocity[DIM] = {0};

    memcpy(out, x, 2 * DIM * sizeof *out);
    if (splits)
        add_product(h, &r->W, x + DIM, out);
    add_product(1, &r->W, x + DIM, velocity);
    add_product(-eps, &r->A, out, p);
    for (int i = 0; i < DIM; i++) {
        p[i] += damp * x[DIM + i] + eps * xi[i] + sqrt(2 * r->a * eps) * xi[DIM + i];
        if (r->integrator == EULER)
            p[i] -= eps * r->a * x[DIM + i];
        if (r->integrator == PRINTED)
            p[i] -= eps * r->a * velocity[i];
        out[DIM + i] = damp * p[i];
    }
    add_product(h, &r->W, out + DIM, out);
}

typedef struct variant {
    const char *sampler;
    enum integrator integrator;
} variant;

#define FROZEN "step_size: 0.25, diffusion: 0.8, thermostat_mass: 1e300"
static const variant frozen[] = {
    {"name: sgnht, " FROZEN, SPLITTING},
    {"name: sgnht, integrator: euler, " FROZEN, EULER},
    {"name: sgnht, paper: true, " FROZEN, PRINTED},
    {"name: sgnphmc, " FROZEN, SPLITTING},
};
enum { N_FROZEN = sizeof frozen / sizeof *frozen };

/* The exact covariance of (theta, p), where the injected noise is a fraction of what it should be.
 */
static void frozen_law(const fixture *f, enum integrator integrator, double fraction, reference *r,
                       double *S)
{
    const matrix one = identity(DIM),
                 injected = sum(fraction, integrator == PRINTED ? &one : &M, 0, &one);
    double N[4 * DIM * DIM] = {0};

    *r = (reference){integrator, f->run.step_size, 0.8, {.n = DIM}, inverse_of(&M)};
    memcpy(r->A.at, law.precision, sizeof r->A.at);
    put_block(&f->V, 0, 2 * DIM, N);
    put_block(&injected, DIM, 2 * DIM, N);
    ck_assert(linear_law(frozen_step, r, 2 * DIM, 2 * DIM, N, S));
}

static double frozen_z(const variant *v, double fraction, uint64_t seed)
{
    double S[4 * DIM * DIM];
    reference r;
    fixture f;

    open_fixture(v->sampler, ANISOTROPIC, seed, &f);
    f.model.law.base.single = seed % 2; /* noise of 32 bits */
    frozen_law(&f, v->integrator, fraction, &r, S);
    visited draws = visit(&f.model.law, grid, &f.run, 2 * DIM, DRAWS);
    const double z = visited_z(&draws, S);
    free(draws.x);
    close_fixture(&f);
    return z;
}

START_TEST(frozen_has_the_exact_law)
{
    for (int i = 0; i < N_FROZEN; i++) {
        const double z = frozen_z(&frozen[i], 1, (uint64_t)_i + 1);
        ck_assert_msg(z < 4, "%s: %.2f standard errors", frozen[i].sampler, z);
        ck_assert_double_gt(frozen_z(&frozen[i], 0.5, (uint64_t)_i + 1), 4);
    }
}
END_TEST

START_TEST(frozen_has_the_exact_linear_part)
{
    char sampler[256];
    double S[4 * DIM * DIM];
    reference r;
    fixture f;

    for (int i = 0; i < N_FROZEN; i++) {
        snprintf(sampler, sizeof sampler, "%s, leapfrog_steps: 1", frozen[i].sampler);
        open_fixture(sampler, ANISOTROPIC, 5, &f);
        frozen_law(&f, frozen[i].integrator, 1, &r, S);
        ck_assert_double_lt(linear_part_error(&f.model, grid, &f.run, 2 * DIM, frozen_step, &r),
                            1e-12);
        close_fixture(&f);
    }
}
END_TEST

/* ---- alive ---- */

/* The thermostat, as a friction: xi, xi_0, or q / Q of sgnphmc, which has (ln s, q / Q). */
static double friction(const em_block *block, const gaussian_law *unused, int64_t c)
{
    (void)unused;
    return block->n_extra == 2 ? block->extra[2 * c + 1] : block->extra[c * block->n_extra];
}

static double friction_squared(const em_block *block, const gaussian_law *unused, int64_t c)
{
    return pow(friction(block, unused, c), 2);
}

static em_diagnosis observe_one(const char *sampler, enum noise noise, uint64_t seed,
                                int64_t n_draw, observable *what)
{
    em_diagnosis out;
    fixture f;

    open_fixture(sampler, noise, seed, &f);
    observe(&f.model, grid, &f.run, n_draw, 1, &what, &out);
    close_fixture(&f);
    return out;
}

/*
 * The largest deviation from the law that thermostats keep, in standard errors: theta ~ target, p ~
 * N(0, M), friction ~ N(mean, variance), where it varies at all. At step 0.05 the bias of order 2
 * is below one standard error (measured at 0.4 and 0.2, see below, and divided by 16).
 */
static double live_z(const char *sampler, enum noise noise, double mean, double variance,
                     uint64_t seed)
{
    enum { N = 8 };
    const int64_t n = variance > 0 ? N : N - 2;
    observable *const what[N] = {moment_00,   moment_01,   moment_11, momentum_00,
                                 momentum_01, momentum_11, friction,  friction_squared};
    double covariance[DIM * DIM];
    em_diagnosis found[N];
    fixture f;

    law_covariance(&law, covariance);
    const double expected[N] = {
        covariance[0], covariance[1], covariance[3], M.at[0][0],
        M.at[0][1],    M.at[1][1],    mean,          mean * mean + variance};
    open_fixture(sampler, noise, seed, &f);
    observe(&f.model, grid, &f.run, 10000, n, what, found);
    close_fixture(&f);
    return worst_deviation(n, found, expected);
}

/* V = 3 M puts a friction of eps/2 3 on top of a; in the direction of thermostat 0 of msgnht, V =
 * L diag(6, 0.5) L^T one of eps/2 6. */
START_TEST(live_has_its_law_at_a_small_step)
{
    const uint64_t seed = (uint64_t)_i + 1;
    const double eps = 0.05;

#define LIVE ", step_size: 0.05, leapfrog_steps: 5, thermostat_mass: 2"
    ck_assert_double_lt(live_z("name: sgnht" LIVE, NONE, 1, 0.5, seed), 4);
    ck_assert_double_lt(live_z("name: sgnht" LIVE, PROPORTIONAL, 1 + eps * 1.5, 0.5, seed), 4);
    ck_assert_double_lt(live_z("name: sgnphmc" LIVE, PROPORTIONAL, 1 + eps * 1.5, 0.5, seed), 4);
    ck_assert_double_lt(live_z("name: sgnphmc, thermostat_diffusion: 3" LIVE, NONE, 1, 0.5, seed),
                        4);
    ck_assert_double_lt(live_z("name: msgnht, step_size: 0.05, leapfrog_steps: 5", PER_DIRECTION,
                               1 + eps * 3, 1, seed),
                        4);
}
END_TEST

/* Without a thermostat the noise heats; as printed the law is another; the friction that absorbs
 * noise is seen; noise in two directions is not absorbed by one thermostat. */
START_TEST(live_twins_fail)
{
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_gt(live_z("name: sgnht, step_size: 0.05, leapfrog_steps: 5, "
                               "thermostat_mass: 1e300",
                               PROPORTIONAL, 1, 0, seed),
                        4);
    ck_assert_double_gt(live_z("name: sgnht, paper: true" LIVE, NONE, 1, 0.5, seed), 4);
    ck_assert_double_gt(live_z("name: sgnht" LIVE, PROPORTIONAL, 1, 0.5, seed), 4);
    ck_assert_double_gt(live_z("name: sgnht, step_size: 0.1, leapfrog_steps: 5, thermostat_mass: 2",
                               PER_DIRECTION, 1 + 0.1 * 1.625, 0.5, seed),
                        4);
}
END_TEST

/* With the gradient of the wrong sign there is no law: every chain runs away, at the speed that the
 * thermostat leaves it, or diverges and is marked. */
START_TEST(twin_with_the_wrong_sign_runs_away)
{
    gaussian_law upside_down = law;
    kernel_bench b;
    fixture f;

    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++)
            upside_down.precision[i][j] *= -1;
    open_fixture(kernels[_i], NONE, 1, &f);
    f.model.law.law = &upside_down;
    bench_open(&f.model.law.base, grid, &f.run, &b);
    start_anywhere(b.block, 0, &b);
    iterate_bench(&b, 2000);
    for (int64_t c = 0; c < N_CHAIN; c++)
        ck_assert(b.block->stat[EM_STAT_DIVERGING][c] > 0 ||
                  fabs(b.block->theta[c * b.block->stride]) > 50);
    bench_close(&b);
    close_fixture(&f);
}
END_TEST

/* Order of the bias of an observable from steps `eps` and eps / 2, with n_draw draws of the latter.
 */
static double order(const char *sampler, enum noise noise, double eps, int64_t n_draw,
                    observable *f, double expected)
{
    double bias[2];
    char text[256];

    for (int half = 0; half < 2; half++) {
        snprintf(text, sizeof text, "%s, leapfrog_steps: 4, step_size: %g", sampler,
                 half ? eps / 2 : eps);
        bias[half] =
            fabs(observe_one(text, noise, 1, half ? n_draw : n_draw / 4, f).mean - expected);
    }
    return order_of(bias[0], bias[1]);
}

/*
 * The standard error of each order is about 0.1 (relative ones of the smaller bias of 0.07), and
 * the next terms of the expansion change it by up to 0.3: 0.6 keeps 1 and 2 apart.
 */
START_TEST(bias_has_its_order)
{
    const double within = 0.6;
    double covariance[DIM * DIM];

    law_covariance(&law, covariance);
#define EULER_Q2     "name: sgnht, integrator: euler, thermostat_mass: 2"
#define SPLITTING_Q2 "name: sgnht, thermostat_mass: 2"
    ck_assert_double_eq_tol(order(EULER_Q2, NONE, 0.2, 80000, excess_energy, 0), 1, within);
    ck_assert_double_eq_tol(
        order("name: msgnht, integrator: euler", NONE, 0.2, 80000, excess_energy, 0), 1, within);
    ck_assert_double_eq_tol(order(SPLITTING_Q2, NONE, 0.4, 80000, excess_energy, 0), 2, within);
    ck_assert_double_eq_tol(order(SPLITTING_Q2, PROPORTIONAL, 0.4, 80000, excess_energy, 0), 2,
                            within);
    ck_assert_double_eq_tol(order("name: msgnht", PER_DIRECTION, 0.28, 240000, excess_energy, 0), 2,
                            within);
    /* What one thermostat does not absorb leaves a bias of order 1. */
    ck_assert_double_eq_tol(
        order(SPLITTING_Q2, PER_DIRECTION, 0.28, 40000, moment_01, covariance[1]), 1, within);
}
END_TEST

/* ---- other laws ---- */

/* The double well of EQUATIONS 21: U = (t + 4)(t + 1)(t - 1)(t - 3) / 14 + 1/2. */
static em_status double_well(em_model *model, const em_query *query)
{
    (void)model;
    for (int64_t c = 0; c < query->n_chain; c++) {
        const double t = query->theta[c * query->stride];
        query->log_density[c] -= (t + 4) * (t + 1) * (t - 1) * (t - 3) / 14 + 0.5;
        query->gradient[c * query->stride] -= (4 * t * t * t + 3 * t * t - 26 * t - 1) / 14;
    }
    return EM_OK;
}

static double quadrature(int power)
{
    double sum = 0, norm = 0;

    for (double t = -10; t < 10; t += 1e-3) {
        const double p = exp(-(t + 4) * (t + 1) * (t - 1) * (t - 3) / 14 - 0.5);
        sum += p * pow(t, power);
        norm += p;
    }
    return sum / norm;
}

/* Worst deviation of E t and E t^2 in standard errors. */
static double double_well_z(const char *sampler, uint64_t seed)
{
    enum { N_DRAW = 8000 };
    const em_model_ops ops = {.name = "double_well", .add_prior = double_well};
    em_model model = {.ops = &ops, .dim = 1};
    double *x = calloc(2 * N_CHAIN * N_DRAW, sizeof *x), worst = 0;
    em_mass *mass = NULL;
    em_config *config = NULL;
    em_diag *diag = NULL;
    kernel_bench b;

    mass_of_array(EM_MASS_DIAG, 1, (const double[]){2}, &mass);
    const kernel_run run = configured(sampler, mass, NULL, seed, &config);
    bench_open(&model, grid, &run, &b);
    bench_start(&b);
    for (int64_t t = -1000; t < N_DRAW; t++) {
        const em_step_context context = bench_context(&b, t + 1000);
        run.ops->step(b.sampler, &context, b.block);
        for (int64_t c = 0; t >= 0 && c < N_CHAIN; c++) {
            const double theta = b.block->theta[c * b.block->stride];
            x[c * N_DRAW + t] = theta;
            x[(N_CHAIN + c) * N_DRAW + t] = theta * theta;
        }
    }
    bench_close(&b);
    em_diag_create(&diag);
    for (int i = 0; i < 2; i++)
        worst =
            fmax(worst, law_z(diag, N_CHAIN, N_DRAW, x + i * N_CHAIN * N_DRAW, quadrature(i + 1)));
    em_diag_destroy(&diag);
    em_mass_destroy(&mass);
    em_config_destroy(&config);
    free(x);
    return worst;
}

START_TEST(double_well_agrees_with_quadrature)
{
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_lt(double_well_z("name: sgnht, step_size: 0.08", seed), 4);
    ck_assert_double_lt(double_well_z("name: msgnht, step_size: 0.08", seed), 4);
    ck_assert_double_lt(double_well_z("name: sgnphmc, step_size: 0.08", seed), 4);
}
END_TEST

/* ---- rows that are cut in pieces ---- */

static em_status standard_normal(em_model *model, const em_query *query)
{
    for (int64_t c = 0; c < query->n_chain; c++)
        for (int64_t i = c * query->stride; i < c * query->stride + model->dim; i++) {
            query->log_density[c] -= query->theta[i] * query->theta[i] / 2;
            query->gradient[i] -= query->theta[i];
        }
    return EM_OK;
}

/* Positions and momenta of the first SHORT dimensions of the last chain, after some iterations. */
static void walk(const char *sampler, int64_t dim, bool single, double *out)
{
    const em_model_ops ops = {.name = "normal", .add_prior = standard_normal};
    em_model model = {.ops = &ops, .dim = dim, .single = single};
    em_mass *mass = NULL;
    em_config *config = NULL;
    kernel_bench b;

    ck_assert_int_eq(em_mass_identity(EM_MASS_DIAG, dim, &mass), EM_OK);
    const kernel_run run = configured(sampler, mass, NULL, 3, &config);
    bench_open(&model, grid, &run, &b);
    bench_start(&b);
    for (int64_t t = 0; t < 4; t++) {
        const em_step_context context = bench_context(&b, t);
        run.ops->step(b.sampler, &context, b.block);
    }
    const int64_t row = (N_CHAIN - 1) * b.block->stride;
    memcpy(out, b.block->theta + row, SHORT * sizeof *out);
    memcpy(out + SHORT, b.block->momentum + row, SHORT * sizeof *out);
    bench_close(&b);
    em_mass_destroy(&mass);
    em_config_destroy(&config);
}

/* A dimension of this law does not know how many others there are: a long row, which is cut, begins
 * with the bits of a short one. */
START_TEST(cut_rows_are_as_whole_ones)
{
    static const char *const samplers[] = {
        "name: msgnht, leapfrog_steps: 3", "name: msgnht, integrator: euler, leapfrog_steps: 1",
        "name: sghmc, leapfrog_steps: 3", "name: sghmc, integrator: euler, leapfrog_steps: 1",
        "name: sgld, leapfrog_steps: 2"};
    static double whole[2 * SHORT], cut[2 * SHORT];

    for (int single = 0; single < 2; single++) {
        walk(samplers[_i], SHORT, single, whole);
        walk(samplers[_i], 3 * SHORT, single, cut);
        ck_assert_mem_eq(whole, cut, sizeof whole);
        ck_assert(whole[SHORT - 1] != 0);
    }
}
END_TEST

/* ---- behaviour ---- */

START_TEST(kernel_behaves)
{
    fixture f;

    open_fixture(kernels[_i], ANISOTROPIC, 1, &f);
    check_behaviour(&f.model.law.base, grid, &f.run);
    close_fixture(&f);
}
END_TEST

/* On the shell the Nose-Poincare flow is the Nose-Hoover one with xi = q / Q, mu = Q. */
START_TEST(canonical_form_is_a_thermostat)
{
    double nose_hoover[N_CHAIN * DIM], nose_poincare[N_CHAIN * DIM];
    fixture f;

    open_fixture("name: sgnht, step_size: 0.2, thermostat_mass: 3", ANISOTROPIC, 1, &f);
    run_in_blocks(&f.model.law.base, grid, &f.run, N_CHAIN, nose_hoover);
    close_fixture(&f);
    open_fixture("name: sgnphmc, step_size: 0.2, thermostat_mass: 3", ANISOTROPIC, 1, &f);
    run_in_blocks(&f.model.law.base, grid, &f.run, N_CHAIN, nose_poincare);
    close_fixture(&f);
    for (int i = 0; i < N_CHAIN * DIM; i++)
        ck_assert_double_eq_tol(nose_hoover[i], nose_poincare[i], 1e-9);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("thermostats");
    TCase *frozen_case = tcase_create("frozen"), *live_case = tcase_create("alive");
    TCase *behaviour = tcase_create("behaviour");

    tcase_set_timeout(frozen_case, 60);
    tcase_add_loop_test(frozen_case, frozen_has_the_exact_law, 0, 4);
    tcase_add_test(frozen_case, frozen_has_the_exact_linear_part);
    tcase_set_timeout(live_case, 60);
    tcase_add_loop_test(live_case, live_has_its_law_at_a_small_step, 0, 4);
    tcase_add_loop_test(live_case, live_twins_fail, 0, 4);
    tcase_add_loop_test(live_case, twin_with_the_wrong_sign_runs_away, 0, N_KERNEL);
    tcase_add_test(live_case, bias_has_its_order);
    tcase_add_loop_test(live_case, double_well_agrees_with_quadrature, 0, 4);
    tcase_add_loop_test(behaviour, cut_rows_are_as_whole_ones, 0, 5);
    tcase_add_loop_test(behaviour, kernel_behaves, 0, N_KERNEL);
    tcase_add_test(behaviour, canonical_form_is_a_thermostat);
    suite_add_tcase(suite, frozen_case);
    suite_add_tcase(suite, live_case);
    suite_add_tcase(suite, behaviour);
    return run_suite_on_grid(suite, argc, argv, 8, &grid);
}
