/*
 * Two samplers take turns, each on its own block of the parameters of one Gaussian: do they leave
 * its law invariant? First and second moments against the exact ones in Monte Carlo standard
 * errors. The blocks depend on each other strongly, so that a sampler that overlooked what the
 * other one did would be found: a law in which they do not must be rejected.
 */
#include "io/reader.h"
#include "law.h"
#include "observe.h"
#include "par/world.h"
#include "run/config.h"
#include "run/driver.h"

#include <unistd.h>

enum { DIM = 4, CHAINS = 4, N_DRAW = 4000 };

static char folder[] = "/tmp/emass-blocks-XXXXXX";

static const gaussian_law law = {
    .dim = DIM,
    .mean = {0},
    .precision = {
        {2, 0.5, 0.9, -0.4}, {0.5, 1, 0.2, 0.6}, {0.9, 0.2, 1.5, 0.3}, {-0.4, 0.6, 0.3, 1}}};

/* The draws of the samplers of a config, [DIM][CHAINS][N_DRAW]. */
static void sample(const char *samplers, uint64_t seed, double *draws)
{
    char text[1024], precision[64], output[64];
    double *rows = calloc((size_t)CHAINS * N_DRAW * DIM, sizeof *rows);
    em_config *config = NULL;
    em_reader *reader = NULL;
    em_report report;
    FILE *file;

    snprintf(precision, sizeof precision, "%s/precision.csv", folder);
    snprintf(output, sizeof output, "%s/out.h5", folder);
    file = fopen(precision, "w");
    for (int i = 0; i < DIM; i++)
        fprintf(file, "%g,%g,%g,%g\n", law.precision[i][0], law.precision[i][1],
                law.precision[i][2], law.precision[i][3]);
    fclose(file);
    snprintf(text, sizeof text,
             "model: {name: gaussian, precision: %s, blocks: 2}\nsampler: %s\n"
             "run: {chains: %d, draws: %d, warmup: 300, seed: %llu}\noutput: {file: %s}\n",
             precision, samplers, CHAINS, N_DRAW, (unsigned long long)seed, output);
    ck_assert_msg(em_config_parse("test.yaml", text, 0, NULL, &config) == EM_OK, "%s",
                  em_error_text());
    ck_assert_msg(em_sample(config, &(em_order){.mode = EM_RUN_OVERWRITE}, &report) == EM_OK, "%s",
                  em_error_text());
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

    sample(pairs[_i], (uint64_t)_i + 1, draws);
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

int main(int argc, char **argv)
{
    Suite *suite = suite_create("blocks");
    TCase *law_case = tcase_create("law");
    char path[64];
    int failed;

    if (em_world_start(&argc, &argv) || !mkdtemp(folder))
        return EXIT_FAILURE;
    tcase_set_timeout(law_case, 120);
    tcase_add_loop_test(law_case, two_samplers_have_the_law, 0, N_PAIR);
    suite_add_tcase(suite, law_case);
    failed = run_suite(suite, CK_NOFORK);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"precision.csv", "out.h5", "out.h5.checkpoint"};
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
    em_world_stop();
    return failed;
}
