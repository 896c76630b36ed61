/*
 * The recipe: with matrices that change with position against the target itself, and as each of
 * HMC, SGLD, SGHMC, SGNHT and SGRHMC, against their exact discretised laws or against quadrature.
 * Without Gamma, or with the sign that was printed, it fails.
 */
#include "base/memory.h"
#include "par/world.h"
#include "sampler/stochastic/recipe.h"
#include "support/array_mass.h"
#include "support/kernel_bench.h"
#include "support/on_grid.h"

enum { MOST = 8 };

static em_grid *grid;

/* ---- chains of the library's stepper ---- */

/* A recipe with a name for its random numbers and a start. */
typedef struct chains {
    em_recipe recipe;
    uint64_t seed;
    double eps;
    int64_t n_inner, n_draw;
    bool refreshes; /* z[1] ~ N(0, 1) before each draw */
} chains;

/* z of N_CHAIN chains: [dim][N_CHAIN][n_draw]. */
static visited run_chains(const chains *r)
{
    em_owner memory = {NULL};
    const int64_t n = r->recipe.dim;
    visited v = {n, r->n_draw, calloc((size_t)(n * N_CHAIN * r->n_draw), sizeof(double))};
    em_recipe_stepper *stepper = NULL;
    _Alignas(64) double normals[MOST];
    em_status status = EM_OK;

    ck_assert_int_eq(em_recipe_create(&memory, &r->recipe, &stepper), EM_OK);
    const int64_t before = em_allocation_count();
    for (int64_t c = 0; c < N_CHAIN; c++) {
        double z[MOST] = {0.5};
        for (int64_t t = -r->n_draw / 20; t < r->n_draw; t++) {
            const em_stream fresh = {r->seed, (uint64_t)c, (uint64_t)(t + r->n_draw),
                                     EM_RNG_MOMENTUM};
            em_normals(&fresh, 1, normals);
            z[1] = r->refreshes ? normals[0] : z[1];
            for (int64_t k = 0; k < r->n_inner; k++) {
                const em_stream stream = {r->seed, (uint64_t)c,
                                          (uint64_t)((t + r->n_draw) * r->n_inner + k),
                                          EM_RNG_NOISE};
                em_normals(&stream, n, normals);
                status |= em_recipe_step(stepper, r->eps, normals, z);
            }
            for (int64_t i = 0; t >= 0 && i < n; i++)
                v.x[(i * N_CHAIN + c) * r->n_draw + t] = z[i];
        }
    }
    ck_assert_int_eq(status, EM_OK);
    ck_assert_int_eq(em_allocation_count(), before);
    em_release_owned(&memory);
    return v;
}

/* ---- the recipe itself: D and Q of the target N(0, P^-1) that change with z ---- */

static const double P[2][2] = {{1.5, 0.6}, {0.6, 1.0}};

typedef struct curved {
    double of_gamma; /* 1; 0 and -1: twins */
    double noise_sd; /* of the gradient */
    em_stream stream;
    uint64_t calls;
} curved;

static em_status curved_slope(void *user, const double *z, double *slope)
{
    curved *s = user;
    _Alignas(64) double normals[MOST] = {0};

    if (s->noise_sd > 0) {
        s->stream.iteration = s->calls++;
        em_normals(&s->stream, 2, normals);
    }
    for (int i = 0; i < 2; i++)
        slope[i] = P[i][0] * z[0] + P[i][1] * z[1] + s->noise_sd * normals[i];
    return EM_OK;
}

static void curved_matrices(void *user, const double *z, double *D, double *Q)
{
    const double a = 0.6 + 0.4 * tanh(z[0]), b = 0.5 + 0.3 * cos(z[1]), c = 0.2 * sin(z[0]);
    const double q = 1 + 0.5 * sin(z[0] + 2 * z[1]);

    (void)user;
    D[0] = a + c * c;
    D[1] = D[2] = 0.9 * c * sqrt(b);
    D[3] = b + c * c;
    Q[0] = Q[3] = 0;
    Q[1] = -q;
    Q[2] = q;
}

/* Gamma by hand, times of_gamma. */
static void curved_divergence(void *user, const double *z, double *gamma)
{
    const curved *s = user;
    const double b = 0.5 + 0.3 * cos(z[1]), c = 0.2 * sin(z[0]), dc = 0.2 * cos(z[0]);
    const double tanh_0 = tanh(z[0]), dq = 0.5 * cos(z[0] + 2 * z[1]);
    const double db = -0.3 * sin(z[1]);

    gamma[0] = 0.4 * (1 - tanh_0 * tanh_0) + 2 * c * dc + 0.45 * c / sqrt(b) * db - 2 * dq;
    gamma[1] = 0.9 * dc * sqrt(b) + dq + db;
    gamma[0] *= s->of_gamma;
    gamma[1] *= s->of_gamma;
}

/* Second moments (00, 01, 11) and their standard errors. */
static void second_moments(const visited *v, double *mean, double *error)
{
    const int64_t n = N_CHAIN * v->n_draw;
    double *f = calloc((size_t)n, sizeof *f);
    em_diag *diag = NULL;
    em_diagnosis diagnosis;
    int at = 0;

    em_diag_create(&diag);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j <= i; j++) {
            for (int64_t k = 0; k < n; k++)
                f[k] = v->x[i * n + k] * v->x[j * n + k];
            em_diagnose(diag, N_CHAIN, v->n_draw, f, &diagnosis);
            mean[at] = diagnosis.mean;
            error[at++] = diagnosis.mcse_mean;
        }
    em_diag_destroy(&diag);
    free(f);
}

/*
 * What the second moments tend to as eps -> 0, in standard errors from those of the target: by
 * Richardson's extrapolation from two step sizes, which takes the bias of order 1 away; what is
 * left is of order 2, taken to be below 1 % at this step.
 */
static double curved_z(double of_gamma, bool by_differences, double noise_sd, uint64_t seed)
{
    static const double truth[] = {1.0 / 1.14, -0.6 / 1.14, 1.5 / 1.14};
    const double V[] = {noise_sd * noise_sd, 0, 0, noise_sd * noise_sd};
    double mean[2][3], error[2][3], worst = 0;

    for (int half = 0; half < 2; half++) {
        curved user = {of_gamma, noise_sd, {seed, 100, 0, EM_RNG_TEST}, 0};
        const double eps = 0.05 / (1 + half);
        const chains r = {{.dim = 2,
                           .user = &user,
                           .slope = curved_slope,
                           .matrices = curved_matrices,
                           .divergence = by_differences ? NULL : curved_divergence,
                           .V = noise_sd > 0 ? V : NULL},
                          seed + 10 * (uint64_t)half,
                          eps,
                          8 * (1 + half),
                          10000,
                          false};
        visited v = run_chains(&r);
        second_moments(&v, mean[half], error[half]);
        free(v.x);
    }
    for (int i = 0; i < 3; i++) {
        const double limit = 2 * mean[1][i] - mean[0][i];
        const double sd = sqrt(4 * error[1][i] * error[1][i] + error[0][i] * error[0][i]);
        worst = fmax(worst, (fabs(limit - truth[i]) - 0.01 * fabs(truth[i])) / sd);
    }
    return worst;
}

START_TEST(changing_matrices_leave_the_target)
{
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_lt(curved_z(1, false, 0, seed), 4);
    ck_assert_double_lt(curved_z(1, true, 0, seed), 4);
    ck_assert_double_lt(curved_z(1, false, 1, seed), 4);
}
END_TEST

START_TEST(without_gamma_or_with_its_sign_printed_fails)
{
    ck_assert_double_gt(curved_z(0, false, 0, 1), 4);
    ck_assert_double_gt(curved_z(-1, false, 0, 1), 4);
}
END_TEST

/* ---- as other samplers, linear: the sampler `recipe` on a correlated Gaussian ---- */

static const gaussian_law law = {.dim = 2, .mean = {1, -2}, .precision = {{2.0, 0.6}, {0.6, 1.0}}};
static const double W[] = {1.0, 0.3, 0.3, 0.7};

typedef struct reference {
    double eps;
    matrix A, W, D, Q; /* D, Q: [4][4] over (theta, p) */
    matrix V;
} reference;

/* z - eps (D + Q) grad H + noise, grad H = (A theta + noise', W p) */
static void step_recipe(const void *self, const double *x, const double *xi, double *out)
{
    const reference *r = self;
    const matrix K = sum(1, &r->D, 1, &r->Q);
    double slope[4] = {xi[0], xi[1], 0, 0};

    add_product(1, &r->A, x, slope);
    if (K.n == 4)
        add_product(1, &r->W, x + 2, slope + 2);
    for (int64_t i = 0; i < K.n; i++)
        out[i] = x[i] + xi[2 + i];
    add_product(-r->eps, &K, slope, out);
}

typedef struct variant {
    const char *sampler;
    double D[16], Q[16];
    int n;
} variant;

#define SYMPLECTIC                                                                                 \
    {                                                                                              \
        0, 0, -1, 0, 0, 0, 0, -1, 1, 0, 0, 0, 0, 1, 0, 0                                           \
    }
static const variant variants[] = {
    {"name: recipe, step_size: 0.1, D: [1, 0.3, 0.3, 0.7]", {1.0, 0.3, 0.3, 0.7}, {0}, 2},
    {"name: recipe, step_size: 0.1, D: [1, 0.3, 0.3, 0.7], Q: [0, 0.5, -0.5, 0]",
     {1.0, 0.3, 0.3, 0.7},
     {0, 0.5, -0.5, 0},
     2},
    {"name: recipe, step_size: 0.05, D: [0,0,0,0, 0,0,0,0, 0,0,1.5,0.4, 0,0,0.4,1], "
     "Q: [0,0,-1,0, 0,0,0,-1, 1,0,0,0, 0,1,0,0]",
     {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1.5, 0.4, 0, 0, 0.4, 1},
     SYMPLECTIC,
     4},
    {"name: recipe, step_size: 0.05",
     {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.7 / 0.61, -0.3 / 0.61, 0, 0, -0.3 / 0.61, 1 / 0.61},
     SYMPLECTIC,
     4},
};
enum { SGLD, IRREVERSIBLE, SGHMC, DEFAULT, N_VARIANT = sizeof variants / sizeof *variants };

static matrix matrix_of(int n, const double *x)
{
    matrix out = {.n = n};

    for (int i = 0; i < n; i++)
        memcpy(out.at[i], x + i * n, (size_t)n * sizeof *x);
    return out;
}

static reference reference_of(const variant *v, const noisy_model *model)
{
    reference r = {.A = {.n = 2}, .W = matrix_of(2, W)};

    memcpy(r.A.at, law.precision, sizeof r.A.at);
    r.D = matrix_of(v->n, v->D);
    r.Q = matrix_of(v->n, v->Q);
    r.V = noisy_covariance(model, false);
    return r;
}

/* noise_scale 1; 0.5: a twin. */
static bool stationary(const reference *r, double noise_scale, double *S)
{
    const matrix K = sum(1, &r->D, 1, &r->Q), Kt = transposed(&K);
    const int64_t n = 2 + K.n;
    matrix V = {.n = K.n};
    double N[36] = {0};

    put_block(&r->V, 0, LAW_MOST_DIM, V.at[0]);
    const matrix KV = product(&K, &V), KVK = product(&KV, &Kt);
    const matrix noise = sum(2 * r->eps * noise_scale, &r->D, -r->eps * r->eps * noise_scale, &KVK);
    put_block(&r->V, 0, n, N);
    put_block(&noise, 2, n, N);
    return linear_law(step_recipe, r, K.n, n, N, S);
}

START_TEST(constant_matrices_have_the_exact_law)
{
    noisy_model model = noisy_model_of(&law, 0.3);
    double S[16], twin[16], V[4];
    em_mass *mass = NULL;
    em_config *config;

    ck_assert_int_eq(mass_of_array(EM_MASS_DENSE, 2, W, &mass), EM_OK);
    for (int i = 0; i < N_VARIANT; i++) {
        reference r = reference_of(&variants[i], &model);
        pack_matrix(&r.V, V);
        const em_noise noise = {EM_MASS_DENSE, 2, V, 0};
        const kernel_run run =
            configured(variants[i].sampler, mass, &noise, (uint64_t)_i + 1, &config);
        r.eps = run.step_size;
        ck_assert(stationary(&r, 1, S) && stationary(&r, 0.5, twin));
        visited v = visit(&model.law, grid, &run, variants[i].n, 4000);
        const double z = visited_z(&v, S);
        ck_assert_msg(z < 4, "%s: %.2f standard errors", variants[i].sampler, z);
        ck_assert_double_gt(visited_z(&v, twin), 4);
        ck_assert_double_lt(allocations_of_steps(&model, grid, &run), 1);
        free(v.x);
        em_config_destroy(&config);
    }
    em_mass_destroy(&mass);
}
END_TEST

/* The covariance of theta has a bias of order 1, and tends to that of the target: so the recipe as
 * SGLD or SGHMC has the law of those samplers in the limit. */
START_TEST(bias_has_order_one)
{
    noisy_model model = noisy_model_of(&law, 0.3);
    double S[16], bias[2];

    for (int i = 0; i < N_VARIANT; i++) {
        reference r = reference_of(&variants[i], &model);
        const matrix Sigma = inverse_of(&r.A);
        for (int half = 0; half < 2; half++) {
            r.eps = 0.01 / (1 + half);
            ck_assert(stationary(&r, 1, S));
            bias[half] = relative_error(2, S, variants[i].n, &Sigma);
        }
        ck_assert_double_eq_tol(order_of(bias[0], bias[1]), 1, 0.1);
    }
}
END_TEST

/* ---- as HMC ---- */

/* z = (theta, p), H = theta^2 / 2 + p^2 / 2 */
static em_status unit_slope(void *user, const double *z, double *slope)
{
    (void)user;
    slope[0] = z[0];
    slope[1] = z[1];
    return EM_OK;
}

static void flow_matrices(void *user, const double *z, double *D, double *Q)
{
    static const double symplectic[] = {0, -1, 1, 0};

    (void)user, (void)z;
    memset(D, 0, 4 * sizeof *D);
    memcpy(Q, symplectic, sizeof symplectic);
}

/* The flow without D for half a unit of time, from a fresh momentum xi. */
static void step_hmc(const void *self, const double *x, const double *xi, double *out)
{
    const double eps = *(const double *)self;
    double p = xi[0];

    out[0] = x[0];
    for (int k = 0; k < 0.5 / eps - 0.5; k++) {
        const double theta = out[0];
        out[0] += eps * p;
        p -= eps * theta;
    }
}

/* As HMC: D = 0 and momenta drawn afresh. The bias is of order 1; that of leapfrog would be 2. */
START_TEST(is_hmc)
{
    const double one = 1, steps[] = {0.02, 0.01};
    const matrix truth = {.n = 1, .at = {{1}}};
    double S[2], bias[2];
    em_recipe recipe = {.dim = 2, .slope = unit_slope, .matrices = flow_matrices};

    for (int half = 0; half < 2; half++) {
        ck_assert(linear_law(step_hmc, &steps[half], 1, 1, &one, &S[half]));
        bias[half] = relative_error(1, &S[half], 1, &truth);
    }
    ck_assert_double_eq_tol(order_of(bias[0], bias[1]), 1, 0.1);
    const chains r = {recipe, (uint64_t)_i + 1, steps[0], 25, 4000, true};
    visited v = run_chains(&r);
    v.n_state = 1;
    ck_assert_double_lt(visited_z(&v, S), 4);
    free(v.x);
}
END_TEST

/* Without that, Euler's method for a flow without noise blows up: no stationary law. */
START_TEST(no_friction_no_law)
{
    noisy_model model = noisy_model_of(&law, 0);
    reference r = reference_of(&variants[SGHMC], &model);
    double S[16];

    r.D = sum(0, &r.D, 0, &r.D);
    r.eps = 0.05;
    ck_assert(!stationary(&r, 1, S));
}
END_TEST

START_TEST(bad_matrices_are_refused)
{
    static const char *const bad[] = {
        "name: recipe, D: [1, 2, 3]", "name: recipe, D: [1, 0.5, 0, 1]",
        "name: recipe, Q: [0, 1, 1, 0]", "name: recipe, D: [1, 2, 2, 1]",
        "name: recipe, D: [1], Q: [0, 1, -1, 0]"};

    for (int i = 0; i < 5; i++) {
        em_config *config;
        em_sampler *sampler = NULL;
        const kernel_run run = configured(bad[i], NULL, NULL, 1, &config);
        ck_assert_int_eq(em_sampler_create(run.ops, run.options, 1, 2, &sampler), EM_ECONFIG);
        em_config_destroy(&config);
    }
}
END_TEST

/* ---- as SGNHT and SGRHMC ---- */

/* z = (theta, p, xi), H = theta^2 / 2 + p^2 / 2 + mu (xi - a)^2 / 2: D_pp = a, Q_p,xi = p / mu. */
enum { THETA, MOMENTUM, XI };
static const double a = 1, mu = 1;

static em_status thermostat_slope(void *user, const double *z, double *slope)
{
    (void)user;
    slope[THETA] = z[THETA];
    slope[MOMENTUM] = z[MOMENTUM];
    slope[XI] = mu * (z[XI] - a);
    return EM_OK;
}

static void thermostat_matrices(void *user, const double *z, double *D, double *Q)
{
    (void)user;
    memset(D, 0, 9 * sizeof *D);
    memset(Q, 0, 9 * sizeof *Q);
    D[3 * MOMENTUM + MOMENTUM] = a;
    Q[3 * THETA + MOMENTUM] = -1;
    Q[3 * MOMENTUM + THETA] = 1;
    Q[3 * MOMENTUM + XI] = z[MOMENTUM] / mu;
    Q[3 * XI + MOMENTUM] = -z[MOMENTUM] / mu;
}

/* z = (theta, r) with the same H, A = G^-1/2 = sqrt(1.5 sqrt(theta^2 / 2 + 0.5)):
 * D_rr = A^2, Q_theta,r = -A, Q_r,theta = A. */
static void riemannian_matrices(void *user, const double *z, double *D, double *Q)
{
    const double A = sqrt(1.5 * sqrt(z[0] * z[0] / 2 + 0.5));

    (void)user;
    memset(D, 0, 4 * sizeof *D);
    memset(Q, 0, 4 * sizeof *Q);
    D[3] = A * A;
    Q[1] = -A;
    Q[2] = A;
}

static void no_divergence(void *user, const double *z, double *gamma)
{
    (void)user, (void)z;
    gamma[0] = gamma[1] = 0;
}

/* E theta^2 - 1 extrapolated to eps = 0, in standard errors beyond 1 %. */
static double unit_variance_z(const em_recipe *recipe, uint64_t seed)
{
    double mean[2][3], error[2][3];

    for (int half = 0; half < 2; half++) {
        const chains r = {
            *recipe, seed + 10 * (uint64_t)half, 0.04 / (1 + half), 8 * (1 + half), 12000, false};
        visited v = run_chains(&r);
        second_moments(&v, mean[half], error[half]);
        free(v.x);
    }
    const double sd = sqrt(4 * error[1][0] * error[1][0] + error[0][0] * error[0][0]);
    return (fabs(2 * mean[1][0] - mean[0][0] - 1) - 0.01) / sd;
}

START_TEST(is_sgnht_and_sgrhmc)
{
    const uint64_t seed = (uint64_t)_i + 1;
    em_recipe thermostat = {.dim = 3, .slope = thermostat_slope, .matrices = thermostat_matrices};
    em_recipe riemannian = {.dim = 2, .slope = unit_slope, .matrices = riemannian_matrices};

    ck_assert_double_lt(unit_variance_z(&thermostat, seed), 4);
    ck_assert_double_lt(unit_variance_z(&riemannian, seed), 4);
    riemannian.divergence = no_divergence;
    ck_assert_double_gt(unit_variance_z(&riemannian, seed), 4);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *law_case = tcase_create("recipe");

    tcase_set_timeout(law_case, 120);
    tcase_add_loop_test(law_case, changing_matrices_leave_the_target, 0, 4);
    tcase_add_test(law_case, without_gamma_or_with_its_sign_printed_fails);
    tcase_add_loop_test(law_case, constant_matrices_have_the_exact_law, 0, 4);
    tcase_add_test(law_case, bias_has_order_one);
    tcase_add_loop_test(law_case, is_hmc, 0, 4);
    tcase_add_test(law_case, no_friction_no_law);
    tcase_add_test(law_case, bad_matrices_are_refused);
    tcase_add_loop_test(law_case, is_sgnht_and_sgrhmc, 0, 4);
    return run_case_on_grid(law_case, argc, argv, 8, &grid);
}
