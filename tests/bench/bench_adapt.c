/*
 * What adaptation is worth: the quality of the mass after each window with 4 and with 16 pooled
 * chains, and the effective samples per gradient it buys. Gaussian of 50 dimensions, rotated,
 * condition 1e4.
 */
#include "bench.h"

#include "adaptation/adaptation.h"
#include "base/memory.h"
#include "math/linalg.h"
#include "math/rng.h"
#include "par/grid.h"
#include "par/world.h"
#include "run/loop/driver.h"

#include <string.h>

enum { DIM = 50 };

#define TARGET "model: {name: gaussian, dim: 50, condition: 10000, rotation: true}\n"

/* ---------------------------------------------------------------- quality of the mass */

/* The precision of the target, column by column from the gradient: A e_j = g(0) - g(e_j). */
static void precision_of(em_posterior *posterior, double *a)
{
    const int64_t stride = em_stride(DIM);
    double *theta = NULL, *at_zero = NULL, *gradient = NULL, value;

    require(em_allocate(stride, sizeof(double), &theta));
    require(em_allocate(stride, sizeof(double), &at_zero));
    require(em_allocate(stride, sizeof(double), &gradient));
    em_query query = {.n_chain = 1,
                      .stride = stride,
                      .chain = &(int64_t){0},
                      .theta = theta,
                      .log_density = &value,
                      .gradient = at_zero};
    require(em_posterior_evaluate(posterior, &query));
    query.gradient = gradient;
    for (int64_t j = 0; j < DIM; j++) {
        theta[j] = 1;
        require(em_posterior_evaluate(posterior, &query));
        theta[j] = 0;
        for (int64_t i = 0; i < DIM; i++)
            a[i * DIM + j] = at_zero[i] - gradient[i];
    }
    em_release(&theta);
    em_release(&at_zero);
    em_release(&gradient);
}

/* cond(W A): with W = L L^T that of L^T A L. */
static double condition(const em_mass *mass, const double *a)
{
    double *work = NULL;

    require(em_allocate(4 * DIM * DIM + DIM, sizeof *work, &work));
    double *lower = work, *upper = work + DIM * DIM, *product = upper + DIM * DIM;
    double *symmetric = product + DIM * DIM, *value = symmetric + DIM * DIM;
    require(em_mass_matrix(mass, EM_MAP_VELOCITY, EM_MASS_DENSE, lower));
    require(em_cholesky(DIM, lower, DIM));
    for (int64_t i = 0; i < DIM; i++)
        for (int64_t j = 0; j < DIM; j++)
            upper[j * DIM + i] = lower[i * DIM + j];
    em_multiply(DIM, upper, a, DIM, product);
    em_multiply(DIM, product, lower, DIM, symmetric);
    require(em_eigen(DIM, symmetric, DIM, value));
    const double ratio = value[DIM - 1] / value[0];
    em_release(&work);
    return ratio;
}

/* Warmup of n_chain chains; the iterations at which windows ended, and the quality they reached. */
static int64_t warm_up(int64_t n_chain, uint64_t seed, int64_t *iteration, double *quality)
{
    const int64_t warmup = 3200 / n_chain;
    em_config *config = NULL;
    em_grid *grid = NULL;
    em_model *model = NULL;
    em_posterior *posterior = NULL;
    em_block *block = NULL;
    em_sampler *sampler = NULL;
    em_adapt *adapt = NULL;
    double a[DIM * DIM];
    int64_t n_window = 0;

    require(em_config_parse("bench.yaml", TARGET "sampler: {name: hmc}\n", 0, NULL, &config));
    const em_model_context context = {1, 0, 1, false, config->model, 0, n_chain};
    config->mass.s_count = 200;
    config->mass.init_buffer = config->mass.term_buffer = warmup / 16;
    require(em_grid_create(n_chain, 1, &grid));
    require(config->model->create(config->model_options, &context, &model));
    require(em_posterior_create(model, grid, n_chain, &posterior));
    require(em_block_create(0, n_chain, DIM, 0, &block));
    require(em_sampler_create(config->sampler, config->sampler_options, n_chain, DIM, &sampler));
    require(em_adapt_create(&config->mass, config->sampler, config->sampler_options, grid, DIM,
                            warmup, seed, &adapt));
    precision_of(posterior, a);
    for (int64_t c = 0; c < n_chain; c++) {
        const em_stream stream = {seed, (uint64_t)c, 0, EM_RNG_INIT};
        double *theta = block->theta + c * block->stride;
        em_uniforms(&stream, 0, DIM, theta);
        for (int64_t i = 0; i < DIM; i++)
            theta[i] = 4 * theta[i] - 2;
    }
    require(em_block_evaluate(posterior, block));
    require(em_adapt_start(adapt, sampler, posterior, block, NULL));
    for (int64_t t = 0, update = em_adapt_next_update(adapt, 0); t < warmup;) {
        const em_step_context step = em_adapt_context(adapt, posterior, t);
        require(sampler->ops->step(sampler, &step, block));
        require(em_adapt_observe(adapt, posterior, block, t++));
        if (t < update)
            continue;
        require(em_adapt_update(adapt, sampler, posterior, block, t));
        update = em_adapt_next_update(adapt, t);
        if (em_adapt_learned(adapt).n_m_step > n_window) {
            iteration[n_window] = t;
            quality[n_window++] = condition(em_adapt_learned(adapt).mass[0], a);
        }
    }
    em_adapt_destroy(&adapt);
    em_sampler_destroy(&sampler);
    em_block_destroy(&block);
    em_posterior_destroy(&posterior);
    config->model->destroy(model);
    em_grid_destroy(&grid);
    em_config_destroy(&config);
    return n_window;
}

/* Medians over seeds of the quality after each window. */
static void pooling(void)
{
    enum { SEEDS = 5, MOST = 16 };
    int64_t at[2][MOST], n = 0;
    double quality[2][MOST][SEEDS];

    for (int k = 0; k < 2; k++)
        for (int seed = 0; seed < SEEDS; seed++) {
            double one[MOST];
            n = warm_up(k ? 16 : 4, (uint64_t)seed + 1, at[k], one);
            for (int64_t i = 0; i < n; i++)
                quality[k][i][seed] = one[i];
        }
    for (int64_t i = 0; i < n; i++) {
        char name[128];
        for (int k = 0; k < 2; k++)
            qsort(quality[k][i], SEEDS, sizeof(double), compare_doubles);
        snprintf(name, sizeof name,
                 "cond(M^-1 A) of 16 chains after %lld iterations (4 chains after %lld: %.3g)",
                 (long long)at[1][i], (long long)at[0][i], quality[0][i][SEEDS / 2]);
        print_figure(name, quality[1][i][SEEDS / 2], "1 is perfect",
                     quality[1][i][SEEDS / 2] / quality[0][i][SEEDS / 2]);
    }
}

/* ---------------------------------------------------------------- ESS per gradient */

/* Of each draw, the same for all masses: what learns no scale of the target, as momentum, has no
 * trajectory of its own. */
enum { STEPS = 10 };

/* The smallest ESS of 4 chains per gradient in sampling, medians over 3 seeds. */
static double ess_per_gradient(const char *estimator, int64_t n_draw, int64_t warmup,
                               int64_t adapt_every)
{
    double ess[3];

    for (int64_t seed = 1; seed <= 3; seed++) {
        char yaml[1024];
        em_config *config = NULL;
        em_report report;
        snprintf(yaml, sizeof yaml,
                 TARGET "sampler: {name: hmc, leapfrog_steps: %d, adapt_every: %lld}\n"
                        "mass: {estimator: %s}\n"
                        "run: {chains: 4, warmup: %lld, draws: %lld, seed: %lld}\n",
                 STEPS, (long long)adapt_every, estimator, (long long)warmup, (long long)n_draw,
                 (long long)seed);
        require(em_config_parse("bench.yaml", yaml, 0, NULL, &config));
        require(em_sample(config, &(em_engine_request){.mode = EM_RUN_NO_FILE}, &report));
        ess[seed - 1] = report.convergence.ess / (STEPS * 4.0 * (double)n_draw);
        em_config_destroy(&config);
    }
    qsort(ess, 3, sizeof *ess, compare_doubles);
    return ess[1];
}

int main(int argc, char **argv)
{
    if (em_world_start(&argc, &argv))
        return EXIT_FAILURE;
    pooling();
    const double identity = ess_per_gradient("none", 20000, 1000, 1);
    print_figure("ESS per gradient, identity mass, adapted step", identity, "ESS/gradient", 1);
    static const char *const names[] = {"fisher", "variance", "gradient", "momentum"};
    for (int i = 0; i < 4; i++) {
        char name[128];
        const double ess = ess_per_gradient(names[i], i < 3 ? 2000 : 20000, 1000, 1);
        snprintf(name, sizeof name, "ESS per gradient, %s, pooled over 4 chains", names[i]);
        print_figure(name, ess, "ESS/gradient", ess / identity);
    }
    const double every = ess_per_gradient("fisher", 2000, 300, 1);
    for (int64_t n = 1; n <= 20; n = n == 5 ? 10 : n == 1 ? 5 : 2 * n) {
        char name[128];
        const double ess = ess_per_gradient("fisher", 2000, 300, n);
        snprintf(name, sizeof name, "ESS per gradient, 300 of warmup, updates every %lld",
                 (long long)n);
        print_figure(name, ess, "ESS/gradient", ess / every);
    }
    em_world_stop();
    return EXIT_SUCCESS;
}
