/*
 * Nose-Poincare HMC: the flow is reversible, preserves volume and has an energy error of order 2;
 * the sampler has the target's law but for a bias of order 2. Without setting s and H_0 anew for
 * each trajectory, as printed, it has not. The printed SG-NPHMC is near the law only.
 */
#include "base/memory.h"
#include "sampler/thermostat/nose_poincare.h"
#include "support/array_mass.h"
#include "support/behaviour.h"
#include "support/jacobian.h"
#include "support/observe.h"
#include "support/on_grid.h"

enum { DIM = 2 };

static em_grid *grid;

static const gaussian_law law = {
    .dim = DIM, .mean = {1, -2}, .precision = {{2.0, -1.2}, {-1.2, 1.5}}};
static const matrix M = {DIM, {{1.5, 0.6}, {0.6, 0.7}}};

typedef struct fixture {
    noisy_model model;
    em_mass *mass;
    em_config *config;
    kernel_run run;
    kernel_bench bench; /* of 8 chains that start in the law */
} fixture;

/* With minibatch noise of covariance v M, or none. */
static void open_fixture(const char *sampler, double v, uint64_t seed, fixture *f)
{
    const matrix W = inverse_of(&M);
    char text[256];
    double w[DIM * DIM];

    pack_matrix(&W, w);
    ck_assert_int_eq(mass_of_array(EM_MASS_DENSE, DIM, w, &f->mass), EM_OK);
    const matrix L = factor_of(f->mass), root = sum(sqrt(v), &L, 0, &L);
    f->model = noisy_model_of(&law, 0);
    set_noise(&f->model, &root);
    snprintf(text, sizeof text, "%s, replacement: true", sampler);
    f->run = configured(text, f->mass, NULL, seed, &f->config);
    bench_open(&f->model.law.base, grid, &f->run, &f->bench);
    for (int64_t c = 0; c < N_CHAIN; c++)
        law_draw(&law, seed, c, f->bench.block->theta + c * f->bench.block->stride);
    bench_start(&f->bench);
}

static void close_fixture(fixture *f)
{
    bench_close(&f->bench);
    em_mass_destroy(&f->mass);
    em_config_destroy(&f->config);
}

/* ---- the flow ---- */

static void flow_steps(em_nose_poincare *flow, const kernel_bench *b, int64_t n_step)
{
    const em_step_context context = bench_context(b, 0);
    const em_query query = em_nose_poincare_query(flow, b->block->chain);

    for (int64_t k = 0; k < n_step; k++) {
        em_nose_poincare_advance(flow, &context);
        em_posterior_evaluate(b->posterior, &query);
        em_nose_poincare_finish(flow, &context);
    }
}

/* mean |H| at time 2 */
static double energy_error(fixture *f, em_nose_poincare *flow, double eps)
{
    const em_step_context context = bench_context(&f->bench, 0);
    double energy[N_CHAIN], sum = 0;

    for (int64_t c = 0; c < N_CHAIN; c++)
        f->bench.step_size[c] = eps;
    em_nose_poincare_start(flow, &context, f->bench.block);
    flow_steps(flow, &f->bench, llround(2 / eps));
    em_nose_poincare_energy(flow, &context, energy);
    for (int64_t c = 0; c < N_CHAIN; c++)
        sum += fabs(energy[c]) / N_CHAIN;
    return sum;
}

START_TEST(energy_error_is_of_order_2)
{
    em_owner memory = {NULL};
    em_nose_poincare *flow;
    fixture f;

    open_fixture("name: nphmc", 0, (uint64_t)_i + 1, &f);
    em_nose_poincare_create(&memory, N_CHAIN, DIM, 1, &flow);
    const double coarse = energy_error(&f, flow, 0.05), fine = energy_error(&f, flow, 0.025);
    ck_assert_double_eq_tol(order_of(coarse, fine), 2, 0.1);
    em_release_owned(&memory);
    close_fixture(&f);
}
END_TEST

static void turn_round(em_nose_poincare *flow)
{
    for (int64_t i = 0; i < N_CHAIN * flow->stride; i++)
        flow->momentum[i] *= -1;
    for (int64_t c = 0; c < N_CHAIN; c++)
        flow->q[c] *= -1;
}

/* How far 20 steps there and back end from where they began. */
static double return_error(fixture *f, double b)
{
    em_owner memory = {NULL};
    const em_step_context context = bench_context(&f->bench, 0);
    const em_block *block = f->bench.block;
    double worst = 0;
    em_nose_poincare *flow;

    em_nose_poincare_create(&memory, N_CHAIN, DIM, 1, &flow);
    flow->friction = b;
    em_nose_poincare_start(flow, &context, block);
    flow_steps(flow, &f->bench, 20);
    turn_round(flow);
    flow_steps(flow, &f->bench, 20);
    for (int64_t c = 0; c < N_CHAIN; c++) {
        worst = fmax(worst, fabs(flow->s[c] - 1));
        for (int64_t i = c * block->stride; i < c * block->stride + DIM; i++)
            worst = fmax(worst, fabs(flow->theta[i] - block->theta[i]));
    }
    em_release_owned(&memory);
    return worst;
}

START_TEST(flow_is_reversible)
{
    fixture f;

    open_fixture("name: nphmc, step_size: 0.1", 0, (uint64_t)_i + 1, &f);
    ck_assert_double_lt(return_error(&f, 0), 1e-10);
    ck_assert_double_gt(return_error(&f, 0.1), 1e-3); /* friction is not */
    close_fixture(&f);
}
END_TEST

typedef struct step_map {
    fixture *f;
    em_nose_poincare *flow;
} step_map;

/* One step of chain 0; z = (theta, p, s, q). */
static void one_step(void *self, const double *z, double *out)
{
    const step_map *map = self;
    em_nose_poincare *flow = map->flow;
    const kernel_bench *b = &map->f->bench;
    const em_query query = em_nose_poincare_query(flow, b->block->chain);
    const size_t bytes = DIM * sizeof *z;

    memcpy(flow->theta, z, bytes);
    memcpy(flow->momentum, z + DIM, bytes);
    flow->s[0] = z[2 * DIM];
    flow->q[0] = z[2 * DIM + 1];
    em_posterior_evaluate(b->posterior, &query);
    flow_steps(flow, b, 1);
    memcpy(out, flow->theta, bytes);
    memcpy(out + DIM, flow->momentum, bytes);
    out[2 * DIM] = flow->s[0];
    out[2 * DIM + 1] = flow->q[0];
}

START_TEST(flow_preserves_volume)
{
    em_owner memory = {NULL};
    const double z[2 * DIM + 2] = {0.5, -1.2, 0.7, -0.4, 1.1, 0.3};
    step_map map;
    fixture f;

    open_fixture("name: nphmc, step_size: 0.2", 0, 1, &f);
    const em_step_context context = bench_context(&f.bench, 0);
    em_nose_poincare_create(&memory, N_CHAIN, DIM, 1, &map.flow);
    em_nose_poincare_start(map.flow, &context, f.bench.block);
    map.f = &f;
    ck_assert_double_eq_tol(jacobian(one_step, &map, 2 * DIM + 2, z), 1, 1e-7);
    map.flow->friction = 0.1;
    ck_assert_double_lt(jacobian(one_step, &map, 2 * DIM + 2, z), 1 - 1e-3);
    em_release_owned(&memory);
    close_fixture(&f);
}
END_TEST

/* ---- the sampler ---- */

static double thermostat_squared(const em_block *block, const gaussian_law *unused, int64_t c)
{
    (void)unused;
    return 4 * block->extra[2 * c + 1] * block->extra[2 * c + 1]; /* of q / Q */
}

enum { N_LAW = 7 };
static observable *const law_observable[N_LAW] = {
    moment_00, moment_01, moment_11, momentum_00, momentum_01, momentum_11, thermostat_squared};

/* Of theta, p / s and q, in standard errors; Q = 2. */
static double law_deviation(const char *sampler, double v, uint64_t seed)
{
    double covariance[DIM * DIM];
    em_diagnosis found[N_LAW];
    fixture f;

    law_covariance(&law, covariance);
    const double expected[N_LAW] = {
        covariance[0], covariance[1], covariance[3], M.at[0][0], M.at[0][1], M.at[1][1], 2};
    open_fixture(sampler, v, seed, &f);
    observe(&f.model, grid, &f.run, 4000, N_LAW, law_observable, found);
    close_fixture(&f);
    return worst_deviation(N_LAW, found, expected);
}

/* The bias at step 0.05, of order 2, is far below a standard error of 0.006 (relative). */
START_TEST(has_the_law_at_a_small_step)
{
    ck_assert_double_lt(law_deviation("name: nphmc, step_size: 0.05, leapfrog_steps: 24, "
                                      "thermostat_mass: 2",
                                      0, (uint64_t)_i + 1),
                        4);
}
END_TEST

/* Relative bias of E q^2 = Q, the moment with the largest one. */
static double bias(double eps, int64_t n_draw)
{
    char text[128];
    observable *const what[] = {thermostat_squared};
    em_diagnosis found;
    fixture f;

    snprintf(text, sizeof text,
             "name: nphmc, thermostat_mass: 2, step_size: %g, leapfrog_steps: %d", eps,
             (int)lround(1.2 / eps));
    open_fixture(text, 0, 1, &f);
    observe(&f.model, grid, &f.run, n_draw, 1, what, &found);
    close_fixture(&f);
    return fabs(found.mean / 2 - 1);
}

/* About 0.025 and 0.006, with standard errors of 0.002 and 0.0008: 0.2 in the order. */
START_TEST(bias_is_of_order_2)
{
    ck_assert_double_eq_tol(order_of(bias(0.3, 60000), bias(0.15, 400000)), 2, 0.6);
}
END_TEST

/* Whether theta_0 is within one standard deviation: bounded, where the twin's moments are not. */
static double is_near(const em_block *block, int64_t c, double variance)
{
    return moment_00(block, &law, c) < variance;
}

/*
 * How often theta_0 is within a standard deviation, in standard errors from what it should be. With
 * `resets` false as in Algorithm 4 as printed: p and q are drawn anew, s and H_0 kept, but that a
 * chain which diverges starts afresh.
 */
static double near_deviation(bool resets, uint64_t seed)
{
    em_owner memory = {NULL};
    enum { N_DRAW = 2000 };
    double covariance[DIM * DIM], *x = calloc(N_CHAIN * N_DRAW, sizeof *x);
    em_nose_poincare *flow;
    em_diag *diag = NULL;
    fixture f;

    law_covariance(&law, covariance);
    open_fixture("name: nphmc, step_size: 0.1", 0, seed, &f);
    em_nose_poincare_create(&memory, N_CHAIN, DIM, 2, &flow);
    for (int64_t t = 0; t < N_DRAW; t++) {
        const em_step_context context = bench_context(&f.bench, t);
        double s[N_CHAIN], h0[N_CHAIN];
        memcpy(s, flow->s, sizeof s);
        memcpy(h0, flow->h0, sizeof h0);
        em_nose_poincare_start(flow, &context, f.bench.block);
        for (int64_t c = 0; c < N_CHAIN; c++)
            if (!resets && t > 0 && f.bench.block->stat[EM_STAT_DIVERGING][c] == 0) {
                flow->s[c] = s[c];
                flow->h0[c] = h0[c];
            }
        flow_steps(flow, &f.bench, 12);
        em_nose_poincare_store(flow, &context, 12, f.bench.block);
        for (int64_t c = 0; c < N_CHAIN; c++)
            x[c * N_DRAW + t] = is_near(f.bench.block, c, covariance[0]);
    }
    em_diag_create(&diag);
    const double z = law_z(diag, N_CHAIN, N_DRAW, x, erf(M_SQRT1_2));
    em_diag_destroy(&diag);
    em_release_owned(&memory);
    close_fixture(&f);
    free(x);
    return isfinite(z) ? z : INFINITY;
}

START_TEST(twin_without_reset_fails)
{
    ck_assert_double_lt(near_deviation(true, (uint64_t)_i + 1), 4);
    ck_assert_double_gt(near_deviation(false, (uint64_t)_i + 1), 4);
}
END_TEST

/* With V = 2 M the friction is eps/2 V, that is, b = eps; U is not noisy enough here for an A. The
 * printed system is not far from the law, but not in it. */
START_TEST(printed_form_is_biased)
{
    const double z = law_deviation("name: sgnphmc, paper: true, step_size: 0.1, diffusion: 0.1, "
                                   "leapfrog_steps: 12, thermostat_mass: 2",
                                   2, (uint64_t)_i + 1);

    ck_assert_double_gt(z, 4);
}
END_TEST

START_TEST(kernel_behaves)
{
    fixture f;

    open_fixture("name: nphmc, step_size: 0.1, leapfrog_steps: 5", 0, 1, &f);
    check_behaviour(&f.model.law.base, grid, &f.run);
    close_fixture(&f);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("nphmc");
    TCase *flow_case = tcase_create("flow"), *law_case = tcase_create("law");

    tcase_add_loop_test(flow_case, energy_error_is_of_order_2, 0, 4);
    tcase_add_loop_test(flow_case, flow_is_reversible, 0, 4);
    tcase_add_test(flow_case, flow_preserves_volume);
    tcase_set_timeout(law_case, 60);
    tcase_add_loop_test(law_case, has_the_law_at_a_small_step, 0, 4);
    tcase_add_test(law_case, bias_is_of_order_2);
    tcase_add_loop_test(law_case, twin_without_reset_fails, 0, 4);
    tcase_add_loop_test(law_case, printed_form_is_biased, 0, 4);
    tcase_add_test(law_case, kernel_behaves);
    suite_add_tcase(suite, flow_case);
    suite_add_tcase(suite, law_case);
    return run_suite_on_grid(suite, argc, argv, 8, &grid);
}
