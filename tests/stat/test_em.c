/*
 * What the adaptation engine learns, on a Gaussian of 5 dimensions and condition number 100. From
 * the momenta of a thermostat, a mass proportional to the covariance of the gradient noise; from
 * that covariance itself, the same at once; from the momenta of HMC, nothing.
 */
#include "adaptation/adaptation.h"
#include "support/observe.h"
#include "support/on_grid.h"

enum { DIM = 5 };

static em_grid *grid;

/* A = diag(1, sqrt 10, 10, 10 sqrt 10, 100) */
static const gaussian_law law = {.dim = DIM,
                                 .precision = {{1},
                                               {0, 3.1622776601683795},
                                               {0, 0, 10},
                                               {0, 0, 0, 31.622776601683793},
                                               {0, 0, 0, 0, 100}}};

/* Of the gradient noise: nothing, 20 A, or 20 tr(A) / D I. */
enum noise { NONE, LIKE_TARGET, ISOTROPIC };

/* A run of the engine on 8 chains. */
typedef struct engine {
    noisy_model model;
    em_config *config;
    em_posterior *posterior;
    em_block *block;
    em_sampler *sampler;
    em_adapt *adapt;
    int64_t iteration;
} engine;

static matrix root_of_noise(enum noise noise)
{
    matrix root = {.n = DIM};
    double trace = 0;

    for (int i = 0; i < DIM; i++)
        trace += law.precision[i][i];
    for (int i = 0; i < DIM; i++)
        root.at[i][i] = noise == NONE          ? 0
                        : noise == LIKE_TARGET ? sqrt(20 * law.precision[i][i])
                                               : sqrt(20 * trace / DIM);
    return root;
}

static void open_engine(const char *sections, enum noise noise, uint64_t seed, engine *e)
{
    const matrix root = root_of_noise(noise);
    char text[512];

    snprintf(text, sizeof text, "model: {name: gaussian}\n%s", sections);
    ck_assert_msg(em_config_parse("test.yaml", text, 0, NULL, &e->config) == EM_OK, "%s",
                  em_error_text());
    const em_sampler_ops *ops = e->config->sampler;
    const void *options = e->config->sampler_options;
    e->model = noisy_model_of(&law, 0);
    set_noise(&e->model, &root);
    em_posterior_create(&e->model.law.base, grid, N_CHAIN, &e->posterior);
    em_block_create(0, N_CHAIN, DIM, em_sampler_n_extra(ops, options, DIM), &e->block);
    em_sampler_create(ops, options, N_CHAIN, DIM, &e->sampler);
    ck_assert_int_eq(em_adapt_create(&e->config->mass, ops, options, grid, DIM,
                                     e->config->run.warmup, seed, &e->adapt),
                     EM_OK);
    e->iteration = 0;
    for (int64_t c = 0; c < N_CHAIN; c++)
        law_draw(&law, seed, c, e->block->theta + c * e->block->stride);
    em_block_evaluate(e->posterior, e->block);
    ck_assert_int_eq(em_adapt_start(e->adapt, e->sampler, e->posterior, e->block, NULL), EM_OK);
}

/* The engine says EM_ECONFIG to such sections. */
static void check_refused(const char *sections)
{
    em_config *config;
    em_adapt *adapt;
    char text[512];

    snprintf(text, sizeof text, "model: {name: gaussian}\n%s", sections);
    ck_assert_int_eq(em_config_parse("test.yaml", text, 0, NULL, &config), EM_OK);
    ck_assert_int_eq(em_adapt_create(&config->mass, config->sampler, config->sampler_options, grid,
                                     DIM, 1000, 1, &adapt),
                     EM_ECONFIG);
    em_config_destroy(&config);
}

static void close_engine(engine *e)
{
    em_adapt_destroy(&e->adapt);
    em_sampler_destroy(&e->sampler);
    em_block_destroy(&e->block);
    em_posterior_destroy(&e->posterior);
    em_config_destroy(&e->config);
}

static void iterate(engine *e)
{
    const em_step_context context = em_adapt_context(e->adapt, e->posterior, e->iteration++);
    ck_assert_int_eq(e->sampler->ops->step(e->sampler, &context, e->block), EM_OK);
}

static void warm_up(engine *e)
{
    const int64_t warmup = e->config->run.warmup;
    int64_t update = em_adapt_next_update(e->adapt, 0);

    while (e->iteration < warmup) {
        const int64_t t = e->iteration;
        iterate(e);
        ck_assert_int_eq(em_adapt_observe(e->adapt, e->posterior, e->block, t), EM_OK);
        if (e->iteration < update)
            continue;
        ck_assert_int_eq(em_adapt_update(e->adapt, e->sampler, e->posterior, e->block, update),
                         EM_OK);
        update = em_adapt_next_update(e->adapt, update);
    }
}

/* Draws of each coordinate after warmup: mean square over the true variance, and bulk ESS. */
static void sample(engine *e, int64_t n_draw, double *ratio, double *ess)
{
    double *x = calloc((size_t)(DIM * N_CHAIN * n_draw), sizeof *x);
    em_diag *diag = NULL;
    em_diagnosis diagnosis;

    for (int64_t t = 0; t < n_draw; t++) {
        iterate(e);
        for (int64_t i = 0; i < DIM; i++)
            for (int64_t c = 0; c < N_CHAIN; c++)
                x[(i * N_CHAIN + c) * n_draw + t] = e->block->theta[c * e->block->stride + i];
    }
    em_diag_create(&diag);
    for (int64_t i = 0; i < DIM; i++) {
        double *row = x + i * N_CHAIN * n_draw, squares = 0;
        em_diagnose(diag, N_CHAIN, n_draw, row, &diagnosis);
        for (int64_t k = 0; k < N_CHAIN * n_draw; k++)
            squares += row[k] * row[k];
        ratio[i] = squares / (double)(N_CHAIN * n_draw) * law.precision[i][i];
        ess[i] = diagnosis.ess_bulk;
    }
    em_diag_destroy(&diag);
    free(x);
}

/* cond(M^-1 A), by the eigenvalues of A^1/2 W A^1/2 */
static double condition(const engine *e)
{
    double w[DIM * DIM], value[DIM];
    const em_mass *mass = em_adapt_learned(e->adapt).mass[0];

    ck_assert_int_eq(em_mass_matrix(mass, EM_MAP_VELOCITY, EM_MASS_DENSE, w), EM_OK);
    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++)
            w[i * DIM + j] *= sqrt(law.precision[i][i] * law.precision[j][j]);
    ck_assert_int_eq(em_eigen(DIM, w, DIM, value), EM_OK);
    return value[DIM - 1] / value[0];
}

/* Runs warmup and 8000 draws; cond(M^-1 A), the largest |Sigma_ii / truth - 1|, and the smallest
 * ESS per gradient, counting those of sampling, `per_draw` each. */
typedef struct outcome {
    double condition, worst_ratio, ess_per_gradient;
} outcome;

static outcome outcome_of(const char *sections, enum noise noise, double per_draw, uint64_t seed)
{
    enum { N_DRAW = 8000 };
    double ratio[DIM], ess[DIM];
    outcome out = {.ess_per_gradient = INFINITY};
    engine e;

    open_engine(sections, noise, seed, &e);
    warm_up(&e);
    out.condition = condition(&e);
    sample(&e, N_DRAW, ratio, ess);
    close_engine(&e);
    for (int i = 0; i < DIM; i++) {
        out.worst_ratio = fmax(out.worst_ratio, fabs(ratio[i] - 1));
        out.ess_per_gradient = fmin(out.ess_per_gradient, ess[i] / (N_CHAIN * N_DRAW * per_draw));
    }
    return out;
}

#define SGNHT                                                                                      \
    "sampler: {name: sgnht, step_size: 0.02, diffusion: 10, minibatch: 6, replacement: true}\n"
#define MOMENTUM "mass: {estimator: momentum, s_count: 800, kappa.eta: 0.6}\nrun: {warmup: 10200}\n"

/* 100 M-steps. Standard errors of the ratios are 0.015 to 0.03. */
START_TEST(sgnht_em_learns_the_noise)
{
    const outcome o = outcome_of(SGNHT MOMENTUM, LIKE_TARGET, 10, (uint64_t)_i + 1);

    ck_assert_double_lt(o.condition, 3);
    ck_assert_double_lt(o.worst_ratio, 0.1);
}
END_TEST

/* ---- SG-NPHMC-EM, which may learn Q as well ---- */

#define SGNPHMC(Q)                                                                                 \
    "sampler: {name: sgnphmc, step_size: 0.02, diffusion: 10, minibatch: 6, replacement: true, "   \
    "thermostat_mass: " #Q ", learn_thermostat_mass: true}\n"

static double learned_thermostat_mass(const char *sections, enum noise noise, uint64_t seed)
{
    double Q;
    engine e;

    open_engine(sections, noise, seed, &e);
    warm_up(&e);
    Q = em_adapt_context(e.adapt, NULL, 0).thermostat_mass[0];
    ck_assert(Q ==
              em_adapt_m_steps(e.adapt, 0)[em_adapt_learned(e.adapt).n_m_step - 1].thermostat_mass);
    close_engine(&e);
    return Q;
}

START_TEST(sgnphmc_em_learns_the_noise)
{
    const outcome o = outcome_of(SGNPHMC(5) MOMENTUM, LIKE_TARGET, 10, (uint64_t)_i + 1);

    ck_assert_double_lt(o.condition, 3);
    ck_assert_double_lt(o.worst_ratio, 0.1);
}
END_TEST

/*
 * Var q is Q whatever Q is, and whatever noise moves the mean of q: but for chance, Q stays. As q /
 * Q relaxes in a time a Q / D (4 iterations for Q = 1, 16 for Q = 4), the 8 M-steps of 1000
 * iterations of 8 chains have n = 1000 or 250 independent samples each; ln Q then moves by sqrt(sum
 * kappa^2 2 / n), 0.06 for Q = 4, and by -3 / n sum kappa = -0.02. The square of q, which a
 * friction of 10 moves to 10 Q, would take Q beyond 100 at the first M-step. With noise the
 * friction wanders while the mass is being learned, and Q grows (ln Q by 0.17 to 0.44 here).
 */
START_TEST(any_thermostat_mass_is_a_fixed_point)
{
#define LONG "mass: {estimator: momentum, s_count: 8000}\nrun: {warmup: 8200}\n"
    const enum noise noise = _i % 2 ? LIKE_TARGET : NONE;
    const double one = learned_thermostat_mass(SGNPHMC(1) LONG, noise, (uint64_t)_i + 1);
    const double four = learned_thermostat_mass(SGNPHMC(4) LONG, noise, (uint64_t)_i + 1);
    const double most = noise == NONE ? 0.3 : 0.8;

    ck_assert_double_lt(fabs(log(one)), most);
    ck_assert_double_lt(fabs(log(four / 4)), most);
    ck_assert(one != 1 && four != 4);
}
END_TEST

START_TEST(thermostat_mass_needs_an_estimator)
{
    check_refused(SGNPHMC(1) "mass: {estimator: none}\n");
}
END_TEST

/* Noise that is not like the target, or none, teaches nothing about it; without learning the
 * covariance is far off. */
START_TEST(sgnht_em_learns_nothing_else)
{
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_gt(outcome_of(SGNHT MOMENTUM, NONE, 10, seed).condition, 50);
    ck_assert_double_gt(outcome_of(SGNHT MOMENTUM, ISOTROPIC, 10, seed).condition, 50);
    ck_assert_double_gt(
        outcome_of(SGNHT "mass: {estimator: none}\nrun: {warmup: 1000}\n", LIKE_TARGET, 10, seed)
            .worst_ratio,
        0.3);
}
END_TEST

/* 13 iterations of 8 chains: 104 samples, which leave errors of sqrt(2 / 104) = 14 % in V and so in
 * M; a sixth of the friction here is noise that is absorbed, so that a variance is off by 3 %. */
#define HUNDRED                                                                                    \
    "mass: {estimator: noise, s_count: 100, init_buffer: 0, term_buffer: 0}\nrun: {warmup: 13}\n"
START_TEST(a_hundred_samples_of_the_noise_do_as_well)
{
    const outcome o = outcome_of(SGNHT HUNDRED, LIKE_TARGET, 10, (uint64_t)_i + 1);

    ck_assert_double_lt(o.condition, 3);
    ck_assert_double_lt(o.worst_ratio, 0.1);
}
END_TEST

/* With exact gradients momenta are N(0, M) whatever M is, and ESS per gradient stays what it was;
 * the Fisher criterion shows that it could have grown. */
START_TEST(hmc_em_learns_nothing)
{
    const uint64_t seed = (uint64_t)_i + 1;
#define HMC(estimator)                                                                             \
    "sampler: {name: hmc, leapfrog_steps: 2}\nmass: {estimator: " estimator                        \
    ", s_count: 800}\nrun: {warmup: 3000}\n"
    const outcome none = outcome_of(HMC("none"), NONE, 2, seed);
    const outcome momentum = outcome_of(HMC("momentum"), NONE, 2, seed);
    const outcome fisher = outcome_of(HMC("fisher"), NONE, 2, seed);

    ck_assert_double_lt(momentum.ess_per_gradient, 1.5 * none.ess_per_gradient);
    ck_assert_double_gt(fisher.ess_per_gradient, 3 * none.ess_per_gradient);
}
END_TEST

/* ---- an estimate that is refused ---- */

/* As warm_up, but before iteration `until` chain 3 has a gradient that samples are made of in
 * iteration 20 alone: one sample is too few for an estimate. */
static void warm_up_blind(engine *e, int64_t until)
{
    int64_t update = em_adapt_next_update(e->adapt, 0);

    while (e->iteration < e->config->run.warmup) {
        const int64_t t = e->iteration;
        double *g = e->block->gradient + 3 * e->block->stride, kept = 0;
        iterate(e);
        kept = g[0];
        if (t < until && t != 20)
            g[0] = NAN;
        ck_assert_int_eq(em_adapt_observe(e->adapt, e->posterior, e->block, t), EM_OK);
        g[0] = kept;
        if (e->iteration < update)
            continue;
        ck_assert_int_eq(em_adapt_update(e->adapt, e->sampler, e->posterior, e->block, update),
                         EM_OK);
        update = em_adapt_next_update(e->adapt, update);
    }
}

/* With share: none the window of a chain whose samples do not allow an estimate goes on into the
 * next one, as that of all chains does; the others begin anew. */
START_TEST(a_refused_window_goes_on)
{
    engine e;

    open_engine("sampler: {name: hmc, leapfrog_steps: 5}\n"
                "mass: {share: none, s_count: 50, init_buffer: 10, term_buffer: 10}\n"
                "run: {warmup: 170}\n",
                NONE, 1, &e);
    warm_up_blind(&e, 60);
    ck_assert_int_eq(em_adapt_learned(e.adapt).n_m_step, 2);
    const em_m_step *alone = em_adapt_m_steps(e.adapt, 3), *other = em_adapt_m_steps(e.adapt, 4);
    ck_assert_double_eq(alone[0].iteration, 60);
    ck_assert_double_eq(alone[0].n_sample, 1);
    ck_assert_double_eq(alone[0].kappa, 0);
    ck_assert_double_eq(alone[1].n_sample, 101);
    ck_assert_double_eq(other[0].n_sample, 50);
    ck_assert_double_eq(other[1].n_sample, 100);
    close_engine(&e);
}
END_TEST

/* ---- the noise that is published to kernels ---- */

/* Its elements V_ij are means of n products of Gaussian-like numbers, of standard deviation below
 * sqrt(3 V_ii V_jj / n). */
START_TEST(noise_is_published)
{
    const enum noise noise = _i % 2 ? LIKE_TARGET : ISOTROPIC;
    const matrix root = root_of_noise(noise);
    engine e;

    open_engine("sampler: {name: sghmc, step_size: 0.001, minibatch: 6, replacement: true}\n"
                "mass: {estimator: none, s_count: 200, init_buffer: 0, term_buffer: 0}\n"
                "run: {warmup: 175}\n",
                noise, (uint64_t)_i + 1, &e);
    ck_assert_ptr_null(em_adapt_context(e.adapt, NULL, 0).noise);
    warm_up(&e);
    ck_assert_ptr_nonnull(em_adapt_context(e.adapt, NULL, 0).noise);
    const em_noise *found = em_adapt_context(e.adapt, NULL, 0).noise[0];
    ck_assert_int_eq(found->structure, EM_MASS_DENSE);
    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++) {
            const double scale = root.at[i][i] * root.at[j][j];
            const double expected = i == j ? scale : 0;
            ck_assert_double_le(fabs(found->covariance[i * DIM + j] - expected),
                                4 * scale * sqrt(3.0 / 800));
        }
    close_engine(&e);
}
END_TEST

START_TEST(noise_needs_minibatches)
{
    check_refused("sampler: {name: sgnht}\nmass: {estimator: noise}\n");
}
END_TEST

int main(int argc, char **argv)
{
    TCase *em = tcase_create("em");

    tcase_set_timeout(em, 60);
    tcase_add_loop_test(em, sgnht_em_learns_the_noise, 0, 4);
    tcase_add_loop_test(em, sgnht_em_learns_nothing_else, 0, 4);
    tcase_add_loop_test(em, sgnphmc_em_learns_the_noise, 0, 4);
    tcase_add_loop_test(em, any_thermostat_mass_is_a_fixed_point, 0, 8);
    tcase_add_test(em, thermostat_mass_needs_an_estimator);
    tcase_add_loop_test(em, a_hundred_samples_of_the_noise_do_as_well, 0, 4);
    tcase_add_loop_test(em, hmc_em_learns_nothing, 0, 4);
    tcase_add_loop_test(em, noise_is_published, 0, 4);
    tcase_add_test(em, noise_needs_minibatches);
    tcase_add_test(em, a_refused_window_goes_on);
    return run_case_on_grid(em, argc, argv, N_CHAIN, &grid);
}
