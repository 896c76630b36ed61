/*
 * SGD, SGLD, SGRLD and SGRHMC against the exact stationary law of their discretised step on a
 * correlated Gaussian with gradient noise of known covariance, and SGLD with decreasing steps.
 * Other laws: test_langevin_curves.c; metrics that change with position: test_langevin_metrics.c.
 */
#include "sampler/stochastic/stochastic.h"
#include "support/array_mass.h"
#include "support/kernel_bench.h"
#include "support/on_grid.h"

enum { DIM = 3, DRAWS = 4000 };

static em_grid *grid;

static const double dense_W[] = {1.0, 0.3, 0.0, 0.3, 0.7, 0.1, 0.0, 0.1, 0.4};
static const double diag_W[] = {0.5, 0, 0, 0, 1.5, 0, 0, 0, 0.2};

/* ---- the steps in plain form ---- */

typedef struct reference {
    double eps;
    matrix A, W, M, V, V_hat, root; /* root: lower L with W = L L^T */
} reference;

/* theta += eps W (-A theta + noise) + noise' */
static void step_langevin(const void *self, const double *x, const double *xi, double *out)
{
    const reference *r = self;
    double force[DIM];

    memcpy(force, xi, sizeof force);
    add_product(-1, &r->A, x, force);
    for (int i = 0; i < DIM; i++)
        out[i] = x[i] + xi[DIM + i];
    add_product(r->eps, &r->W, force, out);
}

/* With A = root: r += A^T (eps (-A theta + noise - A r) + noise'); theta += eps A r */
static void step_riemannian(const void *self, const double *x, const double *xi, double *out)
{
    const reference *r = self;
    const matrix root_transposed = transposed(&r->root);
    double force[DIM], *p = out + DIM;

    memcpy(out, x, 2 * DIM * sizeof *out);
    memcpy(force, xi, sizeof force);
    add_product(-1, &r->A, x, force);
    add_product(-1, &r->root, x + DIM, force);
    for (int i = 0; i < DIM; i++)
        force[i] = r->eps * force[i] + xi[DIM + i];
    add_product(1, &root_transposed, force, p);
    add_product(r->eps, &r->root, p, out);
}

/* 2 eps W - eps^2 W V W */
static matrix noise_langevin(const reference *r)
{
    const matrix WV = product(&r->W, &r->V_hat), WVW = product(&WV, &r->W);

    return sum(2 * r->eps, &r->W, -r->eps * r->eps, &WVW);
}

static matrix noise_none(const reference *r)
{
    return sum(0, &r->W, 0, &r->W);
}

/* 2 eps I - eps^2 V */
static matrix noise_riemannian(const reference *r)
{
    const matrix I = identity(DIM);

    return sum(2 * r->eps, &I, -r->eps * r->eps, &r->V_hat);
}

enum estimate { NO_V, DIAGONAL_V, WHOLE_V };

typedef struct variant {
    const char *sampler;
    linear_step *step;
    matrix (*noise)(const reference *);
    int n_state;
    const double *W;
    int estimate; /* what the kernel is told of V, and leaves out of its noise */
    bool replacement;
} variant;

static const variant variants[] = {
    {"name: sgd, step_size: 0.1", step_langevin, noise_none, DIM, dense_W, NO_V, false},
    {"name: sgld, step_size: 0.2, correct_noise: true", step_langevin, noise_langevin, DIM, dense_W,
     WHOLE_V, false},
    {"name: sgld, step_size: 0.2", step_langevin, noise_langevin, DIM, diag_W, NO_V, true},
    {"name: sgld, step_size: 0.2, correct_noise: true", step_langevin, noise_langevin, DIM, diag_W,
     DIAGONAL_V, false},
    {"name: sgrld, step_size: 0.2", step_langevin, noise_langevin, DIM, dense_W, NO_V, true},
    {"name: sgrhmc, step_size: 0.2", step_riemannian, noise_riemannian, 2 * DIM, dense_W, WHOLE_V,
     false},
    {"name: sgrhmc, step_size: 0.2, correct_noise: false", step_riemannian, noise_riemannian,
     2 * DIM, diag_W, NO_V, true},
};
enum { SGD, SGLD, SGRHMC = 5, N_VARIANT = sizeof variants / sizeof *variants };

typedef struct fixture {
    noisy_model model;
    reference reference;
    em_mass *mass;
    em_noise noise;
    double V_hat[DIM * DIM];
    em_config *config;
    kernel_run run;
} fixture;

static void open_fixture(const variant *v, uint64_t seed, fixture *f)
{
    reference *r = &f->reference;
    const bool dense = v->W == dense_W;
    const double diag[] = {v->W[0], v->W[4], v->W[8]};
    char sampler[256];

    r->A = r->W = (matrix){.n = DIM};
    memcpy(r->A.at, law_of_three.precision, sizeof r->A.at);
    for (int i = 0; i < DIM; i++)
        memcpy(r->W.at[i], v->W + DIM * i, DIM * sizeof *v->W);
    r->M = inverse_of(&r->W);
    r->root = r->W;
    em_cholesky(DIM, r->root.at[0], LAW_MOST_DIM);
    f->model = noisy_model_of(&law_of_three, 0.4);
    r->V = noisy_covariance(&f->model, v->replacement);
    r->V_hat = sum(v->estimate != NO_V, &r->V, 0, &r->V);
    pack_matrix(&r->V, f->V_hat);
    for (int i = 0; v->estimate == DIAGONAL_V && i < DIM; i++) {
        f->V_hat[i] = r->V.at[i][i];
        for (int j = 0; j < DIM; j++)
            r->V_hat.at[i][j] *= i == j;
    }
    f->noise =
        (em_noise){v->estimate == DIAGONAL_V ? EM_MASS_DIAG : EM_MASS_DENSE, DIM, f->V_hat, 0};
    ck_assert_int_eq(
        mass_of_array(dense ? EM_MASS_DENSE : EM_MASS_DIAG, DIM, dense ? v->W : diag, &f->mass),
        EM_OK);
    snprintf(sampler, sizeof sampler, "%s, replacement: %s", v->sampler,
             v->replacement ? "true" : "false");
    f->run = configured(sampler, f->mass, &f->noise, seed, &f->config);
    r->eps = f->run.step_size;
}

static void close_fixture(fixture *f)
{
    em_mass_destroy(&f->mass);
    em_config_destroy(&f->config);
}

static bool stationary(const variant *v, const reference *r, double *S)
{
    const matrix noise = v->noise(r);
    double N[4 * DIM * DIM] = {0};

    put_block(&r->V, 0, 2 * DIM, N);
    put_block(&noise, DIM, 2 * DIM, N);
    return linear_law(v->step, r, v->n_state, 2 * DIM, N, S);
}

START_TEST(has_the_exact_law)
{
    double S[4 * DIM * DIM];
    fixture f;

    for (int i = 0; i < N_VARIANT; i++) {
        const variant *v = &variants[i];
        open_fixture(v, (uint64_t)_i + 1, &f);
        f.model.law.base.single = _i % 2; /* noise of 32 bits */
        ck_assert(stationary(v, &f.reference, S));
        visited draws = visit(&f.model.law, grid, &f.run, v->n_state, DRAWS);
        const double z = visited_z(&draws, S);
        ck_assert_msg(z < 4, "%s: %.2f standard errors", v->sampler, z);
        free(draws.x);
        close_fixture(&f);
    }
}
END_TEST

START_TEST(has_the_exact_linear_part)
{
    variant single = variants[_i];
    char sampler[256];
    fixture f;

    snprintf(sampler, sizeof sampler, "%s, leapfrog_steps: 1", variants[_i].sampler);
    single.sampler = sampler;
    open_fixture(&single, 5, &f);
    ck_assert_double_lt(
        linear_part_error(&f.model, grid, &f.run, single.n_state, single.step, &f.reference),
        1e-12);
    close_fixture(&f);
}
END_TEST

/* The kernel is told to leave out of its noise minus what it should, or half of all of it as well:
 * N(0, 2 eps (M - eps/2 V)) becomes N(0, 2 eps (M/2 - eps/2 V)), where the noise of sgrhmc has the
 * identity for M. */
static double z_of_twin(const variant *v, double of_V, double of_M, uint64_t seed)
{
    double S[4 * DIM * DIM];
    fixture f;

    open_fixture(v, seed, &f);
    ck_assert(stationary(v, &f.reference, S));
    const matrix I = identity(DIM), *M = v->n_state == DIM ? &f.reference.M : &I;
    const matrix V_hat = sum(of_V, &f.reference.V, of_M / f.reference.eps, M);
    pack_matrix(&V_hat, f.V_hat);
    visited draws = visit(&f.model.law, grid, &f.run, v->n_state, DRAWS);
    const double z = visited_z(&draws, S);
    free(draws.x);
    close_fixture(&f);
    return z;
}

START_TEST(twins_fail)
{
    static const int corrected[] = {SGLD, SGRHMC};

    for (int i = 0; i < 2; i++) {
        ck_assert_double_gt(z_of_twin(&variants[corrected[i]], -1, 0, 1), 4);
        ck_assert_double_gt(z_of_twin(&variants[corrected[i]], 1, 1, 1), 4);
    }
}
END_TEST

/* The laws at eps and eps/2: how the bias of a block of S shrinks. */
static double order_of_block(const variant *v, bool corrects, int64_t first)
{
    double S[4 * DIM * DIM], bias[2];
    fixture f;

    open_fixture(v, 1, &f);
    f.reference.V_hat = sum(corrects, &f.reference.V, 0, &f.reference.V);
    const matrix I = identity(DIM), Sigma = first ? I : inverse_of(&f.reference.A);
    for (int half = 0; half < 2; half++) {
        f.reference.eps = 0.02 / (1 + half);
        ck_assert(stationary(v, &f.reference, S));
        bias[half] = relative_error(DIM, S + first * (v->n_state + 1), v->n_state, &Sigma);
    }
    close_fixture(&f);
    return order_of(bias[0], bias[1]);
}

/* SGD: order 0, because its covariance vanishes with eps and the relative error tends to 1. On
 * Gaussians cov(theta) of sgrhmc happens to be of order 2, as that of sghmc with euler. */
START_TEST(bias_has_the_stated_order)
{
    ck_assert_double_eq_tol(order_of_block(&variants[SGD], false, 0), 0, 0.1);
    ck_assert_double_eq_tol(order_of_block(&variants[SGLD], true, 0), 1, 0.1);
    ck_assert_double_eq_tol(order_of_block(&variants[SGLD], false, 0), 1, 0.1);
    ck_assert_double_eq_tol(order_of_block(&variants[SGRHMC], true, 0), 2, 0.1);
    ck_assert_double_eq_tol(order_of_block(&variants[SGRHMC], true, DIM), 1, 0.1);
    ck_assert_double_eq_tol(order_of_block(&variants[SGRHMC], false, 0), 1, 0.1);
}
END_TEST

START_TEST(steps_allocate_nothing)
{
    fixture f;

    open_fixture(&variants[_i], 1, &f);
    ck_assert_int_eq(allocations_of_steps(&f.model, grid, &f.run), 0);
    close_fixture(&f);
}
END_TEST

/* ---- steps by a schedule ---- */

/* 24 rows in minibatches of 6 are 4 to an epoch, of 2 steps an iteration: epoch 1.5 begins with
 * iteration 3, epoch 2 with 4. Of 5 rows each gradient is an epoch, and of 25 rows 5 gradients. */
START_TEST(halves_at_epochs)
{
    static const char text[] = "name: sgld, step_size: 1, leapfrog_steps: 2, halve_at: [1.5, 2]";
    static const double of_24[] = {1, 1, 1, 0.5, 0.25, 0.25}, of_5[] = {1, 0.25},
                        of_25[] = {1, 1, 1, 1, 0.5, 0.25};
    em_config *config;
    const kernel_run run = configured(text, NULL, NULL, 1, &config);

    for (int64_t t = 0; t < 6; t++) {
        ck_assert_double_eq(em_stochastic_step_scale(run.options, 24, t), of_24[t]);
        ck_assert_double_eq(em_stochastic_step_scale(run.options, 25, t), of_25[t]);
        ck_assert_double_eq(em_stochastic_step_scale(run.options, 5, t), of_5[t > 0]);
    }
    em_config_destroy(&config);
}
END_TEST

/*
 * SGLD with eps_t = step_size (1 + t / b)^-c on N(0, 1): the variance obeys s <- (1 - eps)^2 s + 2
 * eps, so that the average of theta^2 with weights eps_t has a known mean. 32 independent averages
 * give their own standard error; without the weights the same numbers are far off.
 */
START_TEST(decreasing_steps_have_their_law)
{
    const gaussian_law unit = {.dim = 1, .precision = {{1}}};
    noisy_model model = noisy_model_of(&unit, 0);
    double mean = 0, square = 0, plain = 0, expected = 0, weight = 0, s = 1;
    em_mass *mass = NULL;
    em_config *config;
    enum { T = 400 };

    ck_assert_int_eq(em_mass_identity(EM_MASS_DIAG, 1, &mass), EM_OK);
    for (int t = 0; t < T; t++) {
        const double eps = 1.2 * pow(1 + t / 20.0, -0.7);
        s = (1 - eps) * (1 - eps) * s + 2 * eps;
        weight += eps;
        expected += eps * s;
    }
    expected /= weight;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        kernel_run run = configured("name: sgld, step_size: 1.2, decay_power: 0.7, decay_scale: "
                                    "20, leapfrog_steps: 1",
                                    mass, NULL, seed, &config);
        double sum_[N_CHAIN] = {0}, flat[N_CHAIN] = {0};
        kernel_bench b;
        bench_open(&model.law.base, grid, &run, &b);
        for (int c = 0; c < N_CHAIN; c++)
            law_draw(&unit, seed, c, b.block->theta + c * b.block->stride);
        bench_start(&b);
        for (int t = 0; t < T; t++) {
            const em_step_context context = bench_context(&b, t);
            const double scale = em_stochastic_step_scale(run.options, 0, t);
            for (int c = 0; c < N_CHAIN; c++)
                b.step_size[c] = run.step_size * scale;
            run.ops->step(b.sampler, &context, b.block);
            for (int c = 0; c < N_CHAIN; c++) {
                const double x = b.block->theta[c * b.block->stride];
                sum_[c] += b.block->stat[EM_STAT_STEP_SIZE][c] * x * x / weight;
                flat[c] += x * x / T;
            }
        }
        for (int c = 0; c < N_CHAIN; c++) {
            mean += sum_[c] / 32;
            square += sum_[c] * sum_[c] / 32;
            plain += flat[c] / 32;
        }
        bench_close(&b);
        em_config_destroy(&config);
    }
    const double error = sqrt((square - mean * mean) / 31);
    ck_assert_double_lt(fabs(mean - expected), 4 * error);
    ck_assert_double_gt(fabs(plain - expected), 4 * error);
    em_mass_destroy(&mass);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *law_case = tcase_create("langevin");

    tcase_set_timeout(law_case, 120);
    tcase_add_loop_test(law_case, has_the_exact_law, 0, 4);
    tcase_add_loop_test(law_case, has_the_exact_linear_part, 0, N_VARIANT);
    tcase_add_test(law_case, twins_fail);
    tcase_add_test(law_case, bias_has_the_stated_order);
    tcase_add_loop_test(law_case, steps_allocate_nothing, 0, N_VARIANT);
    tcase_add_test(law_case, halves_at_epochs);
    tcase_add_test(law_case, decreasing_steps_have_their_law);
    return run_case_on_grid(law_case, argc, argv, 8, &grid);
}
