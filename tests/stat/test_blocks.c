/*
 * Two samplers take turns, each on its own block of the parameters of one Gaussian: do they leave
 * its law invariant? First and second moments against the exact ones in Monte Carlo standard
 * errors. The blocks depend on each other strongly, so that a sampler that overlooked what the
 * other one did would be found: a law in which they do not must be rejected. So that a kernel may
 * move by a metric, the Gaussian is also that of sinh(theta).
 */
#include "emass/model/metric.h"
#include "io/draws/reader.h"
#include "model/model_list.h"
#include "par/world.h"
#include "run/config/config.h"
#include "run/loop/driver.h"
#include "support/law.h"
#include "support/tap.h"

#include <unistd.h>

enum { DIM = 4, CHAINS = 4, N_DRAW = 4000 };

static char folder[] = "/tmp/emass-blocks-XXXXXX";

static const gaussian_law law = {
    .dim = DIM,
    .mean = {0},
    .precision = {
        {2, 0.5, 0.9, -0.4}, {0.5, 1, 0.2, 0.6}, {0.9, 0.2, 1.5, 0.3}, {-0.4, 0.6, 0.3, 1}}};

/* ---- x = sinh(theta) has the law ---- */

static em_status curved_prior(em_model *model, const em_query *query)
{
    for (int64_t c = 0; c < query->n_chain; c++) {
        const double *theta = query->theta + c * query->stride;
        for (int i = 0; i < DIM; i++) {
            double product = 0;
            for (int j = 0; j < DIM; j++)
                product += law.precision[i][j] * sinh(theta[j]);
            query->log_density[c] += log(cosh(theta[i])) - product * sinh(theta[i]) / 2;
            query->gradient[c * query->stride + i] += tanh(theta[i]) - product * cosh(theta[i]);
        }
    }
    (void)model;
    return EM_OK;
}

/* G_ij = A_ij cosh(theta_i) cosh(theta_j), and 1 + sin(theta_k) / 2 more for a number of the other
 * block than k's. What is put down as dG / dtheta_k is that of theta_(k + shift). */
static void curved_metric(int shift, const double *theta, double *metric, double *derivative)
{
    for (int i = 0; i < DIM; i++) {
        const int k = (i + DIM / 2) % DIM;
        metric[i * DIM + i] += 1 + sin(theta[k]) / 2;
        if (derivative)
            derivative[((k + shift) % DIM * DIM + i) * DIM + i] += cos(theta[k]) / 2;
        for (int j = 0; j <= i; j++) {
            metric[i * DIM + j] += law.precision[i][j] * cosh(theta[i]) * cosh(theta[j]);
            if (!derivative)
                continue;
            derivative[((i + shift) % DIM * DIM + i) * DIM + j] +=
                law.precision[i][j] * sinh(theta[i]) * cosh(theta[j]);
            derivative[((j + shift) % DIM * DIM + i) * DIM + j] +=
                law.precision[i][j] * cosh(theta[i]) * sinh(theta[j]);
        }
    }
}

static em_status right_metric(em_model *model, bool prior, const em_rows *rows, const double *theta,
                              double *metric, double *derivative)
{
    (void)model, (void)prior, (void)rows;
    curved_metric(0, theta, metric, derivative);
    return EM_OK;
}

/* What a block would be given that is not the first and overlooked it: slopes in the other one. */
static em_status wrong_metric(em_model *model, bool prior, const em_rows *rows, const double *theta,
                              double *metric, double *derivative)
{
    (void)model, (void)prior, (void)rows;
    curved_metric(DIM / 2, theta, metric, derivative);
    return EM_OK;
}

static em_status curved_report(em_model *model, const em_draw *draw, const double *theta,
                               double *out)
{
    (void)model, (void)draw;
    for (int i = 0; i < DIM; i++)
        out[i] = sinh(theta[i]);
    return EM_OK;
}

static em_status curved_create(const void *options, const em_model_context *context, em_model **out)
{
    static const em_variable x = {.name = "x", .n_axes = 1, .shape = {DIM}};
    static const em_parameters blocks[] = {{"block_1", 0, DIM / 2}, {"block_2", DIM / 2, DIM / 2}};
    static em_model model;

    (void)options;
    model = (em_model){.ops = context->ops,
                       .dim = DIM,
                       .n_block = 2,
                       .block = blocks,
                       .n_variable = 1,
                       .variable = &x};
    *out = &model;
    return EM_OK;
}

static void curved_destroy(em_model *model)
{
    (void)model;
}

#define CURVED(text, function)                                                                     \
    {                                                                                              \
        .name = text, .doc = text, .source = text, .options_size = 1, .create = curved_create,     \
        .destroy = curved_destroy, .add_prior = curved_prior, .report = curved_report,             \
        .metric = &(const em_model_metric)                                                         \
        {                                                                                          \
            .add = function                                                                        \
        }                                                                                          \
    }
static const em_model_ops curved[] = {CURVED("curved", right_metric),
                                      CURVED("curved_wrong", wrong_metric)};

/* ---- runs ---- */

/* The draws of the samplers of a config, [DIM][CHAINS][N_DRAW]; model NULL: gaussian. */
static void sample(const char *model, const char *samplers, uint64_t seed, double *draws)
{
    char text[1024], precision[64], output[64], gaussian[128];
    double *rows = calloc((size_t)CHAINS * N_DRAW * DIM, sizeof *rows);
    em_config *config = NULL;
    em_reader *reader = NULL;
    em_report report;
    FILE *file;

    snprintf(precision, sizeof precision, "%s/precision.csv", folder);
    snprintf(output, sizeof output, "%s/out.h5", folder);
    snprintf(gaussian, sizeof gaussian, "gaussian, precision: %s, blocks: 2", precision);
    file = fopen(precision, "w");
    for (int i = 0; i < DIM; i++)
        fprintf(file, "%g,%g,%g,%g\n", law.precision[i][0], law.precision[i][1],
                law.precision[i][2], law.precision[i][3]);
    fclose(file);
    snprintf(text, sizeof text,
             "model: {name: %s}\nsampler: %s\n"
             "run: {chains: %d, draws: %d, warmup: 300, seed: %llu}\noutput: {file: %s}\n",
             model ? model : gaussian, samplers, CHAINS, N_DRAW, (unsigned long long)seed, output);
    ck_assert_msg(em_config_parse("test.yaml", text, 0, NULL, &config) == EM_OK, "%s",
                  em_error_text());
    ck_assert_msg(em_sample(config, &(em_engine_request){.mode = EM_RUN_OVERWRITE}, &report) ==
                      EM_OK,
                  "%s", em_error_text());
    em_config_destroy(&config);
    ck_assert_int_eq(em_reader_open(output, "posterior", &reader), EM_OK);
    ck_assert_int_eq(em_reader_draws(reader, 0, 0, CHAINS, 0, N_DRAW, rows), EM_OK);
    em_reader_close(&reader);
    for (int64_t k = 0; k < CHAINS * N_DRAW; k++)
        for (int64_t i = 0; i < DIM; i++)
            draws[i * CHAINS * N_DRAW + k] = rows[k * DIM + i];
    free(rows);
}

/* The largest deviation of a moment from that of N(0, covariance), in standard errors. */
static double worst_z(const double *draws, const double *covariance)
{
    const int64_t n = CHAINS * N_DRAW;
    double *product = calloc((size_t)n, sizeof *product), worst = 0;
    em_diag *diag = NULL;

    em_diag_create(&diag);
    for (int64_t i = 0; i < DIM; i++) {
        worst = fmax(worst, law_z(diag, CHAINS, N_DRAW, draws + i * n, 0));
        for (int64_t j = 0; j <= i; j++) {
            for (int64_t k = 0; k < n; k++)
                product[k] = draws[i * n + k] * draws[j * n + k];
            worst = fmax(worst, law_z(diag, CHAINS, N_DRAW, product, covariance[i * DIM + j]));
        }
    }
    em_diag_destroy(&diag);
    free(product);
    return worst;
}

static const char *const pairs[] = {
    "[{block: block_1, name: hmc, leapfrog_steps: 3}, {block: block_2, name: nuts}]",
    "[{block: block_2, name: hmc}, {block: block_1, name: hmc, leapfrog_steps: 2}]",
    "[{block: block_1, name: nuts}, {block: block_2, name: nuts}]",
    "[{block: block_1, name: nuts, mass: {estimator: none}}, {block: block_2, name: hmc}]"};

enum { N_PAIR = sizeof pairs / sizeof *pairs };

/* 14 moments, 4 runs: by chance 4 standard errors are passed in 1 of 300 runs of all. */
START_TEST(two_samplers_have_the_law)
{
    static double draws[DIM * CHAINS * N_DRAW];
    gaussian_law apart = law;
    double covariance[DIM * DIM];

    sample(NULL, pairs[_i], (uint64_t)_i + 1, draws);
    law_covariance(&law, covariance);
    const double z = worst_z(draws, covariance);
    ck_assert_msg(z < 4, "%s: %.2f standard errors", pairs[_i], z);
    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++)
            apart.precision[i][j] *= (i < 2) == (j < 2);
    law_covariance(&apart, covariance);
    ck_assert_double_gt(worst_z(draws, covariance), 4);
}
END_TEST

static const char *const curved_pairs[] = {"[{block: block_1, name: nuts}, {block: block_2, name: "
                                           "rhmc, leapfrog_steps: 6, step_size: 0.5}]",
                                           "[{block: block_1, name: rhmc, leapfrog_steps: 6, "
                                           "step_size: 0.5}, {block: block_2, name: rhmc, "
                                           "leapfrog_steps: 2, metric: diagonal}]"};

/* Of a metric the part that is of the block, and what it changes with: 14 moments each. */
START_TEST(a_block_moves_by_its_part_of_the_metric)
{
    static double draws[DIM * CHAINS * N_DRAW];
    double covariance[DIM * DIM];

    law_covariance(&law, covariance);
    sample("curved", curved_pairs[_i], (uint64_t)_i + 1, draws);
    const double z = worst_z(draws, covariance);
    ck_assert_msg(z < 4, "%s: %.2f standard errors", curved_pairs[_i], z);
    sample("curved_wrong", curved_pairs[_i], (uint64_t)_i + 1, draws);
    const double twin = worst_z(draws, covariance);
    ck_assert_msg(twin > 4, "%s: %.2f standard errors with a wrong slope", curved_pairs[_i], twin);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *law_case = tcase_create("blocks");
    const em_model_ops *models[] = {&curved[0], &curved[1]};
    const em_registry registry = {2, models};
    char path[64];
    int failed;

    if (em_world_start(&argc, &argv) || !mkdtemp(folder))
        return EXIT_FAILURE;
    tcase_set_timeout(law_case, 120);
    em_registry_enter(&registry);
    tcase_add_loop_test(law_case, two_samplers_have_the_law, 0, N_PAIR);
    tcase_add_loop_test(law_case, a_block_moves_by_its_part_of_the_metric, 0, 2);
    failed = run_case(law_case, CK_NOFORK);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"precision.csv", "out.h5", "out.h5.checkpoint"};
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
    em_world_stop();
    return failed;
}
