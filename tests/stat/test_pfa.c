/*
 * Poisson factor analysis. Its gradients, which are estimates, against derivatives of the marginal
 * likelihood in which the topics of all tokens are summed over one by one. And Geweke's joint test:
 * parameters from the prior and data given these, then a while of Langevin dynamics of the model
 * given the data, must leave the parameters with the law of the prior. Twins, of another prior of
 * documents, must be found out by both. And the metric: its derivatives, and the law of kernels
 * that move by it, beside a twin whose metric is said not to change.
 */
#include "emass/model/metric.h"
#include "support/kernel_bench.h"

#include "support/factors.h"
#include "topics/gamma_process.h"

enum { DIM = N_PHI + 2 * N_TOPIC + EM_GAMMA_HYPER };

static void open_pfa_for(int64_t n_chain, bool natural, const char *discard, const char *keep,
                         setup *s)
{
    char vocabulary[64];
    const setting settings[] = {{"data", corpus_path},
                                {"vocabulary", vocabulary},
                                {"topics", "2"},
                                {"rounds", "2"},
                                {"beta", "0.4"},
                                {"prior_sd", "0.7"},
                                {"a0", "3"},
                                {"b0", "4"},
                                {"hyper_shape", "5"},
                                {"hyper_rate", "4"},
                                {"parameters", natural ? "expanded_natural" : "expanded_mean"},
                                {"local_discard", discard},
                                {"local_sweeps", keep},
                                {NULL, NULL}};

    snprintf(vocabulary, sizeof vocabulary, "%s/words", corpus_folder);
    ck_assert_msg(try_setup_for(n_chain, "pfa", settings, 0, 1, s) == EM_OK, "%s", em_error_text());
}

static void open_pfa(bool natural, const char *discard, const char *keep, setup *s)
{
    open_pfa_for(1, natural, discard, keep, s);
}

/* ---------------------------------------------------------------- the exact density */

static void weights(const double *theta, double r[N_TOPIC])
{
    for (int k = 0; k < N_TOPIC; k++)
        r[k] = exp(theta[N_PHI + k] - exp(theta[N_PHI + N_TOPIC + k])) + EM_LEAST_WEIGHT;
}

static double log_document(const target *t, double phi[N_TOPIC][N_WORD], const double *r, int d)
{
    const int n = t->data->n[d];
    double sum = 0, R = r[0] + r[1];

    for (int z = 0; z < 1 << n; z++) {
        int count[N_TOPIC] = {0};
        double p = 1;
        for (int j = 0; j < n; j++) {
            const int k = z >> j & 1;
            p *= (r[k] + count[k]++) * phi[k][t->data->word[d][j]];
        }
        sum += p;
    }
    return log(sum) + lgamma(t->a0 + n) + lgamma(t->b0 + R) - lgamma(t->a0 + n + t->b0 + R);
}

static double log_posterior(const target *t, const double *theta)
{
    const double *E = theta + N_PHI, *T = E + N_TOPIC, *hyper = T + N_TOPIC;
    const double alpha = exp(hyper[0]), gamma = exp(hyper[1]), c = exp(hyper[2]);
    double phi[N_TOPIC][N_WORD], r[N_TOPIC], sum = 0;

    laws(t, theta, phi);
    weights(theta, r);
    for (int d = 0; d < N_DOCUMENT; d++)
        sum += log_document(t, phi, r, d);
    for (int i = 0; i < N_PHI; i++)
        sum += t->natural ? -(theta[i] - 0.1) * (theta[i] - 0.1) / (2 * 0.7 * 0.7)
                          : (0.4 - 1) * log(theta[i]) - theta[i];
    for (int k = 0; k < N_TOPIC; k++)
        sum += log(c) - c * exp(E[k]) + E[k] + (1 + k) * (log(alpha) + T[k]) - alpha * exp(T[k]);
    sum += N_TOPIC * log(gamma) - 2 * gamma;
    for (int i = 0; i < EM_GAMMA_HYPER; i++)
        sum += 5 * hyper[i] - 4 * exp(hyper[i]);
    return sum;
}

/* ---------------------------------------------------------------- the prior */

/* From the prior; of the gamma process with two topics in two rounds, so that given gamma, whose
 * prior is weighed by that, all else is independent: gamma ~ Gamma(5 + 2, 4 + 2). */
static void draw_parameters(const em_stream *stream, double *theta)
{
    double *E = theta + N_PHI, *T = E + N_TOPIC, *hyper = T + N_TOPIC;
    _Alignas(64) double z[8];

    em_normals(stream, N_PHI, z);
    for (int i = 0; i < N_PHI; i++)
        theta[i] = 0.1 + 0.7 * z[i];
    hyper[0] = log(gamma_variate(stream, 1000, 5) / 4);
    hyper[1] = log(gamma_variate(stream, 1001, 5 + N_TOPIC) / (4 + 2));
    hyper[2] = log(gamma_variate(stream, 1002, 5) / 4);
    for (uint64_t k = 0; k < N_TOPIC; k++) {
        E[k] = log(gamma_variate(stream, 1010 + k, 1)) - hyper[2];
        T[k] = log(gamma_variate(stream, 1020 + k, 1 + (double)k)) - hyper[0];
    }
}

static void draw_rates(const em_stream *stream, const double *theta, double odds, uint64_t d,
                       double rate[N_TOPIC])
{
    double r[N_TOPIC];

    weights(theta, r);
    for (uint64_t k = 0; k < N_TOPIC; k++)
        rate[k] = odds * gamma_variate(stream, 2002 + 10 * d + k, r[k]);
}

/* ---------------------------------------------------------------- tests */

static const double somewhere[DIM] = {0.4,  2.1,  1.3, 0.2, 0.9,  1.6, 0.3,
                                      -0.4, -0.6, 0.5, 0.1, -0.2, 0.3};

static const factors pfa = {.dim = DIM,
                            .somewhere = somewhere,
                            .open = open_pfa,
                            .log_posterior = log_posterior,
                            .draw_parameters = draw_parameters,
                            .draw_rates = draw_rates};

START_TEST(gradients_by_enumeration)
{
    compare_gradients(&pfa, _i == 1, 4000);
}
END_TEST

START_TEST(gradients_of_blocks)
{
    compare_blocks(&pfa, _i == 1);
}
END_TEST

START_TEST(joint)
{
    ck_assert_double_le(joint_z(&pfa, 4, 2000, 5), BOUND);
    ck_assert_double_gt(joint_z(&pfa, 1.5, 1000, 6), BOUND);
}
END_TEST

/* ---------------------------------------------------------------- the metric */

/* Elements of the metric, and their derivatives, against central differences; of all parameters and
 * of each block alone. */
static void check_diagonal(const em_posterior *posterior, int64_t n, const double *theta)
{
    const double h = 1e-5;
    double x[DIM], metric[DIM], own[DIM], weight[DIM], slope[DIM], up[DIM], down[DIM];

    for (int64_t i = 0; i < n; i++)
        weight[i] = cos(1.0 + (double)i);
    memcpy(x, theta, (size_t)n * sizeof *x);
    const em_diagonal whole = {
        .theta = x, .metric = metric, .own = own, .weight = weight, .slope = slope};
    em_posterior_diagonal(posterior, 0, &whole);
    for (int64_t k = 0; k < n; k++) {
        double sum = 0;
        const em_diagonal more = {.theta = x, .metric = up}, less = {.theta = x, .metric = down};
        x[k] = theta[k] + h;
        em_posterior_diagonal(posterior, 0, &more);
        x[k] = theta[k] - h;
        em_posterior_diagonal(posterior, 0, &less);
        x[k] = theta[k];
        for (int64_t i = 0; i < n; i++)
            sum += weight[i] * (up[i] - down[i]) / (2 * h);
        ck_assert_double_gt(metric[k], 0);
        ck_assert_double_eq_tol(own[k], (up[k] - down[k]) / (2 * h), 1e-8 * metric[k]);
        ck_assert_double_eq_tol(slope[k], sum, 1e-7);
    }
}

START_TEST(metric_has_its_derivatives)
{
    _Alignas(64) double theta[STRIDE] = {0};
    em_posterior *whole = NULL, *part = NULL;
    setup s;

    memcpy(theta, somewhere, sizeof somewhere);
    write_corpus(&some_words);
    open_pfa(true, "2", "2", &s);
    ck_assert_int_eq(em_posterior_create(s.model, grid, 1, &whole), EM_OK);
    ck_assert(em_posterior_is_diagonal(whole));
    check_diagonal(whole, DIM, theta);
    for (int64_t b = 0; b < s.model->n_block; b++) {
        const em_parameters *block = &s.model->block[b];
        ck_assert_int_eq(em_posterior_create_part(whole, block, 1, 0, theta, &part), EM_OK);
        check_diagonal(part, block->count, theta + block->first);
        em_posterior_destroy(&part);
    }
    em_posterior_destroy(&whole);
    teardown(&s);
}
END_TEST

/* ---------------------------------------------------------------- kernels with that metric */

/* As if the metric did not change with position. */
static void without_slopes(em_model *model, const em_diagonal *ask)
{
    const int64_t n = ask->block ? ask->block->count : DIM;

    find_model("pfa")->metric->diagonal(model, ask);
    if (ask->own)
        memset(ask->own, 0, (size_t)n * sizeof *ask->own);
    if (ask->slope)
        memset(ask->slope, 0, (size_t)n * sizeof *ask->slope);
}

/* With s the gradient of the log posterior by enumeration, means of s_i and s_i (theta_i - c_i) are
 * 0 and -1 where theta has its law. */
static void note_identities(const target *t, const em_block *block, int64_t n_draw, double *x)
{
    double s[DIM];

    for (int64_t c = 0; c < N_CHAIN; c++) {
        const double *theta = block->theta + c * block->stride;
        exact_gradient(&pfa, t, theta, s);
        for (int64_t i = 0; i < DIM; i++) {
            x[(2 * i * N_CHAIN + c) * n_draw] = s[i];
            x[((2 * i + 1) * N_CHAIN + c) * n_draw] = 1 + s[i] * (theta[i] - somewhere[i]);
        }
    }
}

/* The largest deviation of those from zero, in standard errors. */
static double law_z_of(em_model *model, const target *t, const char *sampler, int64_t n_draw,
                       uint64_t seed)
{
    double *x = calloc((size_t)(2 * DIM * N_CHAIN * n_draw), sizeof *x), worst = 0;
    em_config *config = NULL;
    em_mass *mass = NULL;
    em_diag *diag = NULL;
    kernel_bench b;

    em_mass_identity(EM_MASS_DIAG, DIM, &mass);
    const kernel_run run = configured_with(N_DOCUMENT, sampler, mass, NULL, seed, &config);
    bench_open(model, grid, &run, &b);
    for (int64_t c = 0; c < N_CHAIN; c++)
        memcpy(b.block->theta + c * b.block->stride, somewhere, sizeof somewhere);
    bench_start(&b);
    for (int64_t i = -n_draw / 10; i < n_draw; i++) {
        const em_step_context context = bench_context(&b, i + n_draw / 10);
        ck_assert_int_eq(run.ops->step(b.sampler, &context, b.block), EM_OK);
        if (i >= 0)
            note_identities(t, b.block, n_draw, x + i);
    }
    bench_close(&b);
    em_diag_create(&diag);
    for (int64_t k = 0; k < 2 * DIM; k++)
        worst = fmax(worst, law_z(diag, N_CHAIN, n_draw, x + k * N_CHAIN * n_draw, 0));
    em_diag_destroy(&diag);
    em_mass_destroy(&mass);
    em_config_destroy(&config);
    free(x);
    return worst;
}

static const char *const by_metric[] = {
    "name: sgrnphmc, leapfrog_steps: 10, step_size: 0.2, diffusion: 0.1",
    "name: sgrld, metric: fisher, leapfrog_steps: 10, step_size: 0.02",
    "name: sgrhmc, metric: fisher, leapfrog_steps: 10, step_size: 0.05"};
enum { N_BY_METRIC = sizeof by_metric / sizeof *by_metric };

START_TEST(kernels_with_its_metric_have_the_law)
{
    const target t = {true, 3, 4, &some_words};
    em_model_ops twin = *find_model("pfa");
    setup s;

    const em_model_metric metric = {.diagonal = without_slopes};
    twin.metric = &metric;
    write_corpus(&some_words);
    open_pfa_for(N_CHAIN, true, "5", "5", &s);
    const double right = law_z_of(s.model, &t, by_metric[_i], 1000, 1);
    s.model->ops = &twin;
    const double wrong = law_z_of(s.model, &t, by_metric[_i], 1000, 1);
    printf("# %s: %g, %g\n", by_metric[_i], right, wrong);
    ck_assert_double_le(right, BOUND);
    ck_assert_double_gt(wrong, BOUND);
    s.model->ops = s.ops;
    teardown(&s);
}
END_TEST

static Suite *pfa_suite(void)
{
    Suite *suite = suite_create("pfa");
    TCase *all = tcase_create("all");

    tcase_add_loop_test(all, gradients_by_enumeration, 0, 2);
    tcase_add_loop_test(all, gradients_of_blocks, 0, 2);
    tcase_add_test(all, metric_has_its_derivatives);
    tcase_add_loop_test(all, kernels_with_its_metric_have_the_law, 0, N_BY_METRIC);
    tcase_add_test(all, joint);
    tcase_set_timeout(all, 300);
    suite_add_tcase(suite, all);
    return suite;
}

int main(int argc, char **argv)
{
    return run_factors(&argc, &argv, pfa_suite);
}
