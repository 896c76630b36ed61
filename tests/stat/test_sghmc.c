/*
 * SGHMC, with and without friction, against the exact stationary law of its discretised step on a
 * correlated Gaussian: dense mass, dense friction that does not commute with it, and gradient noise
 * of known covariance. Twins that are wrong on purpose fail the same bounds.
 */
#include "par/world.h"
#include "support/array_mass.h"
#include "support/kernel_bench.h"
#include "support/on_grid.h"

enum { DIM = 3, DRAWS = 4000 };

static em_grid *grid;

static const double dense_W[] = {1.0, 0.3, 0.0, 0.3, 0.7, 0.1, 0.0, 0.1, 0.4};
static const double diag_W[] = {0.5, 1.5, 0.2};

#define DENSE_C "friction_matrix: [1.5, 0.5, 0.2, 0.5, 1.0, -0.3, 0.2, -0.3, 2.0]"
static const double dense_C[] = {1.5, 0.5, 0.2, 0.5, 1.0, -0.3, 0.2, -0.3, 2.0};
#define DIAG_C "friction_matrix: [1.5, 1.0, 2.0]"
static const double scalar_C[] = {1.2, 0, 0, 0, 1.2, 0, 0, 0, 1.2};
static const double diag_C[] = {1.5, 0, 0, 0, 1.0, 0, 0, 0, 2.0};

/* ---- the step in plain form ---- */

enum integrator { EULER, SPLITTING, ABOBA, NAIVE };

typedef struct reference {
    int integrator;
    int n_inner; /* steps of an iteration that refreshes the momentum first; 0: it does not */
    double eps;
    matrix A, W, M, C, V;
    matrix V_hat; /* what is left out of the noise */
} reference;

/* theta += h W p */
static void drift(const reference *r, double h, double *x)
{
    add_product(h, &r->W, x + DIM, x);
}

/* p -= h (A theta + noise) */
static void kick(const reference *r, double h, const double *noise, double *x)
{
    add_product(-h, &r->A, x, x + DIM);
    for (int i = 0; i < DIM; i++)
        x[DIM + i] -= h * noise[i];
}

/* p <- E p + noise */
static void bathe(const matrix *E, const double *noise, double *x)
{
    double p[DIM];

    memcpy(p, x + DIM, sizeof p);
    for (int i = 0; i < DIM; i++)
        x[DIM + i] = noise ? noise[i] : 0;
    add_product(1, E, p, x + DIM);
}

static matrix decay(const reference *r)
{
    const matrix CW = product(&r->C, &r->W), I = identity(DIM);
    const matrix argument = sum(r->integrator == ABOBA ? r->eps : r->eps / 2, &CW, 0, &CW);

    return r->integrator == EULER ? sum(1, &I, -r->eps, &CW) : decay_of(&argument);
}

/* One inner step with gradient noise xi[0..DIM) and injected noise xi[DIM..2 DIM). */
static void inner(const reference *r, const double *xi, double *x)
{
    const matrix E = decay(r);
    const double *injected = xi + DIM;

    if (r->integrator == EULER) {
        bathe(&E, injected, x);
        kick(r, r->eps, xi, x);
        drift(r, r->eps, x);
        return;
    }
    drift(r, r->eps / 2, x);
    if (r->integrator == SPLITTING) {
        bathe(&E, NULL, x);
        kick(r, r->eps, xi, x);
        bathe(&E, NULL, x);
        add_product(1, &E, injected, x + DIM);
    } else {
        kick(r, r->eps / 2, xi, x);
        bathe(&E, injected, x);
        kick(r, r->eps / 2, xi, x);
    }
    drift(r, r->eps / 2, x);
}

/* Leapfrog from a fresh momentum xi[0..DIM), with gradient noise xi[DIM ...). */
static void leapfrog(const reference *r, const double *xi, double *x)
{
    memcpy(x + DIM, xi, DIM * sizeof *x);
    kick(r, r->eps / 2, xi + DIM, x);
    for (int k = 1; k <= r->n_inner; k++) {
        drift(r, r->eps, x);
        kick(r, k < r->n_inner ? r->eps : r->eps / 2, xi + (1 + k) * DIM, x);
    }
}

static void iterate(const void *self, const double *x, const double *xi, double *out)
{
    const reference *r = self;

    memcpy(out, x, 2 * DIM * sizeof *out);
    if (r->integrator == NAIVE) {
        leapfrog(r, xi, out);
        return;
    }
    if (r->n_inner == 0) {
        inner(r, xi, out);
        return;
    }
    memcpy(out + DIM, xi, DIM * sizeof *out);
    for (int k = 0; k < r->n_inner; k++)
        inner(r, xi + DIM + 2 * k * DIM, out);
}

/* Covariance of what one inner step injects. */
static matrix injected(const reference *r)
{
    const matrix none = {.n = DIM};
    matrix out;

    if (r->integrator == NAIVE)
        return none;
    if (r->integrator == ABOBA) {
        const matrix E = decay(r), Et = transposed(&E), I = identity(DIM);
        const matrix K = sum(r->eps / 2, &I, r->eps / 2, &E), Kt = transposed(&K);
        const matrix EM = product(&E, &r->M), EME = product(&EM, &Et);
        const matrix KV = product(&K, &r->V_hat), KVK = product(&KV, &Kt);
        out = sum(1, &r->M, -1, &EME);
        out = sum(1, &out, -1, &KVK);
    } else {
        out = sum(2 * r->eps, &r->C, -r->eps * r->eps, &r->V_hat);
    }
    return out;
}

/* The stationary covariance of (theta, p) [2 DIM][2 DIM]; false where there is none. */
static bool stationary(const reference *r, double *S)
{
    const matrix noise = injected(r);
    const int fresh = r->n_inner > 0, n_pair = fresh ? r->n_inner + 1 : 1;
    const int n =
        (r->integrator == NAIVE ? 1 + n_pair : fresh + 2 * (fresh ? r->n_inner : 1)) * DIM;
    double N[LINEAR_MOST * LINEAR_MOST] = {0};
    int at = 0;

    if (fresh)
        put_block(&r->M, DIM * at++, n, N);
    while (DIM * at < n) {
        put_block(&r->V, DIM * at++, n, N);
        if (r->integrator != NAIVE)
            put_block(&noise, DIM * at++, n, N);
    }
    return linear_law(iterate, r, 2 * DIM, n, N, S);
}

/* ---- a kernel and what it should be ---- */

typedef struct fixture {
    noisy_model model;
    reference reference;
    em_mass *mass;
    em_noise noise;
    double V_hat[DIM * DIM];
    em_config *config;
    kernel_run run;
} fixture;

enum estimate { NO_V, DIAGONAL_V, WHOLE_V };

typedef struct variant {
    const char *sampler;
    int integrator;
    int n_inner;  /* as in reference */
    double gamma; /* or 0: C below */
    const double *C;
    em_structure structure;
    int estimate; /* what the kernel is told of V, and leaves out of its noise */
    bool replacement;
} variant;

static const variant variants[] = {
    {"name: sghmc, integrator: euler, step_size: 0.2, " DENSE_C, EULER, 0, 0, dense_C,
     EM_MASS_DENSE, WHOLE_V, false},
    {"name: sghmc, integrator: splitting, step_size: 0.3, " DENSE_C, SPLITTING, 0, 0, dense_C,
     EM_MASS_DENSE, WHOLE_V, false},
    {"name: sghmc, integrator: aboba, step_size: 0.25, " DENSE_C, ABOBA, 0, 0, dense_C,
     EM_MASS_DENSE, WHOLE_V, true},
    {"name: sghmc, integrator: aboba, step_size: 0.4, friction: 1.5", ABOBA, 0, 1.5, NULL,
     EM_MASS_DENSE, WHOLE_V, true},
    {"name: sghmc, integrator: splitting, step_size: 0.3, friction: 1.5, correct_noise: false",
     SPLITTING, 0, 1.5, NULL, EM_MASS_DIAG, NO_V, false},
    {"name: sghmc, integrator: euler, step_size: 0.2, correct_noise: false, " DIAG_C, EULER, 0, 0,
     diag_C, EM_MASS_DIAG, NO_V, true},
    {"name: sghmc, integrator: aboba, step_size: 0.3, correct_noise: false, " DIAG_C, ABOBA, 0, 0,
     diag_C, EM_MASS_DENSE, NO_V, true},
    {"name: sghmc, integrator: aboba, step_size: 0.2, " DIAG_C, ABOBA, 0, 0, diag_C, EM_MASS_DIAG,
     DIAGONAL_V, false},
    {"name: sghmc, integrator: splitting, step_size: 0.2, friction: 1.5", SPLITTING, 0, 1.5, NULL,
     EM_MASS_DENSE, DIAGONAL_V, false},
    {"name: sghmc, integrator: euler, step_size: 0.2, friction_matrix: [1.2]", EULER, 0, 0,
     scalar_C, EM_MASS_DENSE, WHOLE_V, false},
    {"name: sghmc, refresh_momentum: true, step_size: 0.3, leapfrog_steps: 4", ABOBA, 4, 1, NULL,
     EM_MASS_DENSE, WHOLE_V, false},
    {"name: sghmc, paper: true, step_size: 0.15, leapfrog_steps: 4", EULER, 4, 1, NULL,
     EM_MASS_DENSE, WHOLE_V, false},
    {"name: sghmc_naive, metropolis: false, jitter: false, step_size: 0.3, leapfrog_steps: 4",
     NAIVE, 4, 1, NULL, EM_MASS_DENSE, NO_V, false},
};
enum { N_VARIANT = sizeof variants / sizeof *variants };

static matrix matrix_of(em_structure structure, const double *x)
{
    matrix out = {.n = DIM};

    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++)
            if (structure == EM_MASS_DENSE || i == j)
                out.at[i][j] = structure == EM_MASS_DENSE ? x[i * DIM + j] : x[i];
    return out;
}

static void open_fixture(const variant *v, uint64_t seed, fixture *f)
{
    const double *W = v->structure == EM_MASS_DENSE ? dense_W : diag_W;
    reference *r = &f->reference;
    char sampler[256];

    *r = (reference){.integrator = v->integrator, .n_inner = v->n_inner};
    r->A.n = DIM;
    memcpy(r->A.at, law_of_three.precision, sizeof r->A.at);
    r->W = matrix_of(v->structure, W);
    r->M = inverse_of(&r->W);
    r->C = v->C ? matrix_of(EM_MASS_DENSE, v->C) : sum(v->gamma, &r->M, 0, &r->M);
    f->model = noisy_model_of(&law_of_three, 0.4);
    r->V = noisy_covariance(&f->model, v->replacement);
    pack_matrix(&r->V, f->V_hat);
    for (int i = 0; v->estimate == DIAGONAL_V && i < DIM; i++)
        f->V_hat[i] = r->V.at[i][i];
    f->noise =
        (em_noise){v->estimate == DIAGONAL_V ? EM_MASS_DIAG : EM_MASS_DENSE, DIM, f->V_hat, 0};
    r->V_hat = matrix_of(f->noise.structure, f->V_hat);
    r->V_hat = sum(v->estimate != NO_V, &r->V_hat, 0, &r->V_hat);
    ck_assert_int_eq(mass_of_array(v->structure, DIM, W, &f->mass), EM_OK);
    snprintf(sampler, sizeof sampler, "%s, replacement: %s", v->sampler,
             v->replacement ? "true" : "false");
    f->run = configured(sampler, f->mass, &f->noise, seed, &f->config);
    r->eps = f->run.step_size;
    if (r->integrator != NAIVE) { /* the premise of the exact law: nothing is projected away */
        matrix noise = injected(r);
        ck_assert_msg(em_cholesky(DIM, noise.at[0], LAW_MOST_DIM) == EM_OK, "%s: V is too large",
                      v->sampler);
    }
}

static void close_fixture(fixture *f)
{
    em_mass_destroy(&f->mass);
    em_config_destroy(&f->config);
}

/* ---- tests ---- */

/* Inner steps of an iteration without refreshment leave the law of one step. */
START_TEST(has_the_exact_law)
{
    double S[4 * DIM * DIM];
    fixture f;

    for (int i = 0; i < N_VARIANT; i++) {
        open_fixture(&variants[i], (uint64_t)_i + 1, &f);
        f.model.law.base.single = _i % 2; /* noise of 32 bits */
        ck_assert(stationary(&f.reference, S));
        visited v = visit(&f.model.law, grid, &f.run, 2 * DIM, DRAWS);
        const double z = visited_z(&v, S);
        ck_assert_msg(z < 4, "%s: %.2f standard errors", variants[i].sampler, z);
        free(v.x);
        close_fixture(&f);
    }
}
END_TEST

/* An iteration of one inner step, from the same random numbers, to rounding. */
START_TEST(has_the_exact_linear_part)
{
    const variant *v = &variants[_i];
    variant single = *v;
    char sampler[256];
    fixture f;

    snprintf(sampler, sizeof sampler, "%s%s", v->sampler,
             v->n_inner == 0 ? ", leapfrog_steps: 1" : "");
    single.sampler = sampler;
    open_fixture(&single, 5, &f);
    ck_assert_double_lt(linear_part_error(&f.model, grid, &f.run, 2 * DIM, iterate, &f.reference),
                        1e-12);
    close_fixture(&f);
}
END_TEST

/* Covariances that make the kernel leave out of its noise: minus what it should (the sign), or half
 * of what it injects as well (V + C / eps: N(0, 2 eps (C - B)) becomes N(0, 2 eps (C/2 - B))). */
static double z_with_estimate(const variant *v, double of_V, double of_C, uint64_t seed)
{
    double S[4 * DIM * DIM];
    fixture f;

    open_fixture(v, seed, &f);
    ck_assert(stationary(&f.reference, S));
    const matrix V_hat = sum(of_V, &f.reference.V, of_C / f.reference.eps, &f.reference.C);
    pack_matrix(&V_hat, f.V_hat);
    visited draws = visit(&f.model.law, grid, &f.run, 2 * DIM, DRAWS);
    const double z = visited_z(&draws, S);
    free(draws.x);
    close_fixture(&f);
    return z;
}

START_TEST(twins_fail)
{
    for (int i = 0; i < 3; i++) {
        ck_assert_double_gt(z_with_estimate(&variants[i], -1, 0, (uint64_t)_i + 1), 4);
        ck_assert_double_gt(z_with_estimate(&variants[i], 1, 1, (uint64_t)_i + 1), 4);
    }
}
END_TEST

/* The gradient of the wrong sign leaves no law: the chain runs away and is marked. */
START_TEST(twin_with_the_wrong_sign_diverges)
{
    gaussian_law upside_down = law_of_three;
    double lost = 0;
    em_status status = EM_OK;
    bool finite = true;
    fixture f;
    kernel_bench b;

    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++)
            upside_down.precision[i][j] = -law_of_three.precision[i][j];
    open_fixture(&variants[2], 1, &f);
    f.model = noisy_model_of(&upside_down, 0.4);
    bench_open(&f.model.law.base, grid, &f.run, &b);
    bench_start(&b);
    for (int t = 0; t < 1000; t++) {
        const em_step_context context = bench_context(&b, t);
        status |= f.run.ops->step(b.sampler, &context, b.block);
        lost += b.block->stat[EM_STAT_DIVERGING][0];
        finite &= isfinite(b.block->stat[EM_STAT_LP][0]);
        for (int i = 0; i < DIM; i++)
            finite &= isfinite(b.block->theta[i]) && isfinite(b.block->momentum[i]);
    }
    ck_assert_int_eq(status, EM_OK);
    ck_assert(finite);
    ck_assert_double_gt(lost, 0);
    bench_close(&b);
    close_fixture(&f);
}
END_TEST

/* The chain with Metropolis-Hastings on all data samples the target itself, whatever the noise;
 * with the law of the naive one it disagrees. */
START_TEST(metropolis_is_exact)
{
    const variant exact = {"name: sghmc_naive, jitter: false, step_size: 0.3, leapfrog_steps: 4",
                           NAIVE,
                           4,
                           1,
                           NULL,
                           EM_MASS_DENSE,
                           false,
                           false};
    double S[DIM * DIM], naive[4 * DIM * DIM], naive_theta[DIM * DIM];
    fixture f;

    open_fixture(&exact, (uint64_t)_i + 1, &f);
    law_covariance(&law_of_three, S);
    ck_assert(stationary(&f.reference, naive));
    for (int i = 0; i < DIM; i++)
        memcpy(naive_theta + i * DIM, naive + 2 * i * DIM, DIM * sizeof *naive);
    visited v = visit(&f.model.law, grid, &f.run, DIM, DRAWS);
    ck_assert_double_lt(visited_z(&v, S), 4);
    ck_assert_double_gt(visited_z(&v, naive_theta), 4);
    free(v.x);
    close_fixture(&f);
}
END_TEST

/*
 * The order of the bias in eps, from the exact laws: that of cov(theta) and cov(p) for euler 2
 * (Gaussians only) and 1; splitting 2 and 2; aboba none and 2. Without V-hat noise adds order 1.
 */
static void check_order(int variant_index, bool corrects, double of_theta, double of_p)
{
    double S[2][4 * DIM * DIM], bias[2], bias_p[2];
    fixture f;

    open_fixture(&variants[variant_index], 1, &f);
    const matrix Sigma = inverse_of(&f.reference.A);
    f.reference.V_hat = sum(corrects, &f.reference.V, 0, &f.reference.V);
    f.reference.n_inner = 0;
    for (int half = 0; half < 2; half++) {
        f.reference.eps = 0.04 / (1 + half);
        ck_assert(stationary(&f.reference, S[half]));
        bias[half] = relative_error(DIM, S[half], 2 * DIM, &Sigma);
        bias_p[half] = relative_error(DIM, S[half] + DIM * (2 * DIM + 1), 2 * DIM, &f.reference.M);
    }
    if (of_theta > 0)
        ck_assert_double_eq_tol(order_of(bias[0], bias[1]), of_theta, 0.1);
    else
        ck_assert_double_lt(bias[0], 1e-12);
    ck_assert_double_eq_tol(order_of(bias_p[0], bias_p[1]), of_p, 0.1);
    close_fixture(&f);
}

START_TEST(bias_has_the_stated_order)
{
    check_order(0, true, 2, 1);
    check_order(0, false, 1, 1);
    check_order(1, true, 2, 2);
    check_order(1, false, 1, 1);
    check_order(2, true, 0, 2);
    check_order(2, false, 1, 1);
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

START_TEST(bad_options_are_refused)
{
    em_sampler *sampler = NULL;
    em_config *config;

    kernel_run run = configured("name: sghmc, friction_matrix: [1, 2]", NULL, NULL, 1, &config);
    ck_assert_int_eq(em_sampler_create(run.ops, run.options, 1, DIM, &sampler), EM_ECONFIG);
    em_config_destroy(&config);
    run = configured("name: sghmc, integrator: euler, refresh_momentum: true", NULL, NULL, 1,
                     &config);
    ck_assert_int_eq(em_sampler_create(run.ops, run.options, 1, DIM, &sampler), EM_ECONFIG);
    em_config_destroy(&config);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *law_case = tcase_create("sghmc");

    tcase_set_timeout(law_case, 120);
    tcase_add_loop_test(law_case, has_the_exact_law, 0, 4);
    tcase_add_loop_test(law_case, has_the_exact_linear_part, 0, N_VARIANT);
    tcase_add_loop_test(law_case, twins_fail, 0, 1);
    tcase_add_test(law_case, twin_with_the_wrong_sign_diverges);
    tcase_add_loop_test(law_case, metropolis_is_exact, 0, 4);
    tcase_add_test(law_case, bias_has_the_stated_order);
    tcase_add_loop_test(law_case, steps_allocate_nothing, 0, N_VARIANT);
    tcase_add_test(law_case, bad_options_are_refused);
    return run_case_on_grid(law_case, argc, argv, 8, &grid);
}
