/*
 * HMC without MPI: what the framework costs beyond the gradient, and times per iteration beside
 * those of Roychowdhury & Parthasarathy 2017, Table 3 (10 leapfrog steps; their machine, 2016).
 */
#include "bench.h"

#include "base/memory.h"
#include "model/model_list.h"
#include "par/grid.h"
#include "par/world.h"
#include "posterior/posterior.h"
#include "run/config/config.h"
#include "sampler/kernel/sampler.h"

#include <string.h>

static em_grid *grid;

/* A chain block on a model, ready to step. */
typedef struct bench {
    em_config *config;
    em_model *model;
    em_posterior *posterior;
    em_sampler *sampler;
    em_block *block;
    em_mass *mass;
    const em_mass *masses[8];
    double steps[8];
    int64_t iteration;
} bench;

static void open_bench(const char *yaml, int64_t n_chain, em_structure structure, bench *b)
{
    memset(b, 0, sizeof *b);
    require(em_config_parse("bench.yaml", yaml, 0, NULL, &b->config));
    const em_model_context context = {1, 0, 1, false, b->config->model, 0, n_chain};
    require(b->config->model->create(b->config->model_options, &context, &b->model));
    require(em_posterior_create(b->model, grid, n_chain, &b->posterior));
    require(em_block_create(0, n_chain, b->model->dim, 0, &b->block));
    require(em_sampler_create(b->config->sampler, b->config->sampler_options, n_chain,
                              b->model->dim, &b->sampler));
    require(em_mass_identity(structure, b->model->dim, &b->mass));
    for (int64_t c = 0; c < n_chain; c++) {
        b->masses[c] = b->mass;
        b->steps[c] = 1e-3;
    }
    require(em_block_evaluate(b->posterior, b->block));
}

static void close_bench(bench *b)
{
    em_sampler_destroy(&b->sampler);
    em_mass_destroy(&b->mass);
    em_block_destroy(&b->block);
    em_posterior_destroy(&b->posterior);
    b->config->model->destroy(b->model);
    em_config_destroy(&b->config);
}

static void iterate(void *data)
{
    bench *b = data;
    const em_step_context context = {.posterior = b->posterior,
                                     .mass = b->masses,
                                     .step_size = b->steps,
                                     .seed = 1,
                                     .iteration = b->iteration++};

    require(b->sampler->ops->step(b->sampler, &context, b->block));
}

static void evaluate(void *data)
{
    bench *b = data;

    require(em_block_evaluate(b->posterior, b->block));
}

/* Ten steps exactly, so that an iteration is ten gradients and the rest is ours. */
#define SAMPLER "sampler: {name: hmc, leapfrog_steps: 10, jitter: false, step_size: 0.001}\n"

static void overhead(em_structure structure, const char *name)
{
    bench b;
    double step, gradient;

    open_bench("model: {name: gaussian, dim: 10}\n" SAMPLER, 8, structure, &b);
    step = seconds_per_call(iterate, &b);
    gradient = seconds_per_call(evaluate, &b);
    close_bench(&b);
    print_figure(name, (step - 10 * gradient) / 80 * 1e9, "ns per leapfrog step and chain",
                 step / (10 * gradient));
}

/* Eight chains with trees of 63 leaves. */
static void nuts_overhead(void)
{
    bench b;
    double step, gradient, leaves = 0;

    open_bench("model: {name: gaussian, dim: 10}\n"
               "sampler: {name: nuts, step_size: 0.001, max_treedepth: 6}\n",
               8, EM_MASS_DENSE, &b);
    step = seconds_per_call(iterate, &b);
    gradient = seconds_per_call(evaluate, &b);
    for (int64_t c = 0; c < 8; c++)
        leaves += b.block->stat[EM_STAT_N_STEPS][c] / 8;
    close_bench(&b);
    print_figure("framework beyond the gradient, dim 10, dense mass, nuts",
                 (step / leaves - gradient) / 8 * 1e9, "ns per leapfrog step and chain",
                 step / (leaves * gradient));
}

static void table3(const char *name, const char *yaml, double paper_ms)
{
    bench b;
    char text[128];

    for (int64_t n_chain = 1; n_chain <= 8; n_chain += 7) {
        open_bench(yaml, n_chain, EM_MASS_DENSE, &b);
        const double ms = seconds_per_call(iterate, &b) * 1e3 / (double)n_chain;
        snprintf(text, sizeof text, "HMC iteration, %s, block of %lld (paper: %.3f ms)", name,
                 (long long)n_chain, paper_ms);
        print_figure(text, ms, "ms per chain", paper_ms / ms);
        close_bench(&b);
    }
}

int main(int argc, char **argv)
{
    if (em_world_start(&argc, &argv) || em_grid_create(8, 1, &grid))
        return EXIT_FAILURE;
    overhead(EM_MASS_DIAG, "framework beyond the gradient, dim 10, diag mass");
    overhead(EM_MASS_DENSE, "framework beyond the gradient, dim 10, dense mass");
    nuts_overhead();
    table3("synthetic", "model: {name: logistic, n: 2000, intercept: false}\n" SAMPLER, 1.435);
    if (getenv("EMASS_DATA")) {
        table3("Australian",
               "model: {name: logistic, data: \"${EMASS_DATA}/australian/australian.dat\", "
               "standardise: true}\n" SAMPLER,
               0.987);
        table3("Heart",
               "model: {name: logistic, data: \"${EMASS_DATA}/heart/heart.dat\", positive: 2, "
               "standardise: true}\n" SAMPLER,
               0.791);
    }
    em_grid_destroy(&grid);
    em_world_stop();
    return EXIT_SUCCESS;
}
