/*
 * Metrics that change with position: their roots and divergences against central differences, and
 * SGRLD and SGRHMC with the Fisher metric of a model, with twins without the correction terms.
 */
#include "base/memory.h"
#include "emass/model/metric.h"
#include "par/world.h"
#include "sampler/riemannian/riemannian_metric.h"
#include "sampler/stochastic/stochastic.h"
#include "support/kernel_bench.h"
#include "support/on_grid.h"

enum { DIM = 3 };

static em_grid *grid;

/* G = diag(1.2 + sin(theta_i)) + w w^T, w_i = 0.6 cos(theta_i+1). */
static em_status add_metric(em_model *base, bool prior, const em_rows *rows, const double *theta,
                            double *metric, double *derivative)
{
    const int64_t n = base->dim;

    (void)rows;
    if (!prior) /* no observation has a part in it */
        return EM_OK;
    for (int64_t i = 0; i < n; i++) {
        metric[i * n + i] += 1.2 + sin(theta[i]);
        if (derivative)
            derivative[(i * n + i) * n + i] += cos(theta[i]);
        for (int64_t j = 0; j <= i; j++) {
            const double *x = theta;
            metric[i * n + j] += 0.36 * cos(x[(i + 1) % n]) * cos(x[(j + 1) % n]);
            if (!derivative)
                continue;
            derivative[((i + 1) % n * n + i) * n + j] -=
                0.36 * sin(x[(i + 1) % n]) * cos(x[(j + 1) % n]);
            derivative[((j + 1) % n * n + i) * n + j] -=
                0.36 * cos(x[(i + 1) % n]) * sin(x[(j + 1) % n]);
        }
    }
    return EM_OK;
}

static const em_model_ops curved_ops = {.name = "curved",
                                        .add_prior = law_add_prior,
                                        .metric = &(const em_model_metric){.add = add_metric}};

/* A [DIM][DIM] at theta + shift e_j; leaves the metric there. */
static void root_at(em_metric *metric, kernel_bench *b, int64_t j, double shift, matrix *A)
{
    const em_step_context context = bench_context(b, 0);
    em_block *block = b->block;

    block->theta[j] += shift;
    em_block_evaluate(b->posterior, block);
    ck_assert_int_eq(em_metric_evaluate_density(metric, &context, block, true), EM_OK);
    ck_assert_int_eq(em_metric_set_position(metric, &context, block, 0), EM_OK);
    block->theta[j] -= shift;
    *A = identity(DIM);
    for (int i = 0; i < DIM; i++)
        for (int k = 0; k < DIM; k++)
            if (metric->structure == EM_MASS_DENSE || i == k)
                A->at[i][k] = metric->root[metric->structure == EM_MASS_DENSE ? i * DIM + k : i];
}

/* The divergence of A (sum_j dA_ji) or of A A^T, against central differences. */
static void check_divergence(const em_metric_options *options, em_divergence of, kernel_bench *b)
{
    em_owner memory = {NULL};
    const double h = 1e-5;
    double expected[DIM] = {0};
    em_metric *metric = NULL;
    matrix A[2], AA[2];

    ck_assert_int_eq(em_metric_create(&memory, options, of, N_CHAIN, DIM, &metric), EM_OK);
    for (int j = 0; j < DIM; j++) {
        for (int side = 0; side < 2; side++) {
            root_at(metric, b, j, side ? -h : h, &A[side]);
            const matrix At = transposed(&A[side]);
            AA[side] = product(&A[side], &At);
        }
        for (int i = 0; i < DIM; i++)
            expected[i] += of == EM_DIVERGENCE_OF_ROOT
                               ? (A[0].at[j][i] - A[1].at[j][i]) / (2 * h)
                               : (AA[0].at[i][j] - AA[1].at[i][j]) / (2 * h);
    }
    root_at(metric, b, 0, 0, &A[0]);
    for (int i = 0; i < DIM; i++)
        ck_assert_double_eq_tol(metric->divergence[i], expected[i], 1e-8);
    em_release_owned(&memory);
}

START_TEST(divergences_are_those_of_the_metric)
{
    static const em_metric_kind kinds[] = {EM_METRIC_EXPANDED_MEAN, EM_METRIC_DENSITY,
                                           EM_METRIC_FISHER};
    const em_metric_options options = {kinds[_i], 1.5, 1.5};
    const double theta[DIM] = {0.7, 1.3, 0.4};
    law_model model = law_model_of(&law_of_three);
    em_config *config;
    kernel_bench b;

    model.base.ops = &curved_ops;
    const kernel_run run = configured("name: sgrld", NULL, NULL, 1, &config);
    bench_open(&model.base, grid, &run, &b);
    memcpy(b.block->theta, theta, sizeof theta);
    check_divergence(&options, EM_DIVERGENCE_OF_ROOT, &b);
    check_divergence(&options, EM_DIVERGENCE_OF_INVERSE, &b);
    bench_close(&b);
    em_config_destroy(&config);
}
END_TEST

/* The variances of SGRHMC or SGRLD with that metric, extrapolated from two step sizes to none, in
 * standard errors beyond 1 % from those of the law: what is left there is of order 2. */
static double curved_z(const char *sampler, double eps, uint64_t seed)
{
    noisy_model model = noisy_model_of(&law_of_three, 0);
    double Sigma[DIM * DIM], worst = 0;
    em_mass *mass = NULL;
    em_diag *diag = NULL;
    em_diagnosis d[2];
    visited v[2];

    model.law.base.ops = &curved_ops;
    law_covariance(&law_of_three, Sigma);
    ck_assert_int_eq(em_mass_identity(EM_MASS_DIAG, DIM, &mass), EM_OK);
    for (int half = 0; half < 2; half++) {
        em_config *config;
        char text[128];
        snprintf(text, sizeof text, "%s, metric: fisher, step_size: %g, leapfrog_steps: %d",
                 sampler, eps / (1 + half), 6 * (1 + half));
        const kernel_run run = configured(text, mass, NULL, seed + 10 * (uint64_t)half, &config);
        v[half] = visit(&model.law, grid, &run, DIM, 6000);
        em_config_destroy(&config);
    }
    em_diag_create(&diag);
    for (int i = 0; i < DIM; i++) {
        for (int half = 0; half < 2; half++) {
            double *x = v[half].x + i * N_CHAIN * v[half].n_draw;
            for (int64_t k = 0; k < N_CHAIN * v[half].n_draw; k++)
                x[k] *= x[k];
            em_diagnose(diag, N_CHAIN, v[half].n_draw, x, &d[half]);
        }
        const double truth = Sigma[i * (DIM + 1)], limit = 2 * d[1].mean - d[0].mean;
        const double error = hypot(2 * d[1].mcse_mean, d[0].mcse_mean);
        worst = fmax(worst, (fabs(limit - truth) - 0.01 * truth) / error);
    }
    em_diag_destroy(&diag);
    em_mass_destroy(&mass);
    free(v[0].x);
    free(v[1].x);
    return worst;
}

START_TEST(fisher_metric_leaves_the_law)
{
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_lt(curved_z("name: sgrld", 0.05, seed), 4);
    ck_assert_double_lt(curved_z("name: sgrhmc", 0.1, seed), 4);
}
END_TEST

START_TEST(fisher_metric_without_its_correction_fails)
{
    ck_assert_double_gt(curved_z("name: sgrhmc, naive: true", 0.1, 1), 4);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *law_case = tcase_create("langevin_metrics");

    tcase_set_timeout(law_case, 120);
    tcase_add_loop_test(law_case, divergences_are_those_of_the_metric, 0, 3);
    tcase_add_loop_test(law_case, fisher_metric_leaves_the_law, 0, 4);
    tcase_add_test(law_case, fisher_metric_without_its_correction_fails);
    return run_case_on_grid(law_case, argc, argv, 8, &grid);
}
