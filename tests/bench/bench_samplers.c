/*
 * One inner step of each stochastic kernel at dimension 1e5 with a free gradient and a diagonal
 * mass, against the least it could take: the normals it needs at the measured rate of the
 * generator, plus 8 bytes for each pass over theta (read, written), gradient (written by the
 * target, read), inverse mass, momentum (read, written) and bath at the measured bandwidth of a
 * triad. Scratch is not counted. A ratio above 1 means that panels stay in the cache.
 */
#include "bench.h"

#include "base/memory.h"
#include "math/rng.h"
#include "par/grid.h"
#include "par/world.h"
#include "run/config/config.h"
#include "sampler/kernel/sampler.h"

#include <string.h>

enum { DIM = 100000, STEPS = 10, N_CHAIN = 4, TRIAD = 20000000 };

static em_grid *grid;

/* What a kernel must touch in a step and chain, in passes of DIM doubles, and normals per
 * coordinate. */
static const struct {
    const char *sampler;
    double passes, normals;
} kernels[] = {
    {"name: sgd", 5, 0},
    {"name: sgld", 6, 1},
    {"name: sgrld, metric: expanded_mean", 4, 1},
    {"name: sghmc_naive, metropolis: false, jitter: false", 7, 0},
    {"name: sghmc, integrator: euler", 9, 1},
    {"name: sghmc, integrator: splitting", 9, 1},
    {"name: sghmc, integrator: aboba", 9, 1},
    {"name: sgrhmc, metric: mass", 7, 1},
    {"name: sgnht", 7, 1},
    {"name: msgnht, integrator: euler", 9, 1},
    {"name: msgnht, integrator: splitting", 9, 1},
    {"name: sgnphmc", 7, 1},
};

static em_status free_prior(em_model *model, const em_query *query)
{
    (void)model, (void)query;
    return EM_OK;
}

static const em_model_ops free_ops = {.name = "free", .add_prior = free_prior};

typedef struct bench {
    em_sampler *sampler;
    em_step_context context;
    em_block *block;
} bench;

static void iterate(void *data)
{
    bench *b = data;

    require(b->sampler->ops->step(b->sampler, &b->context, b->block));
    b->context.iteration++;
}

/* Seconds of one inner step of one chain. */
static double time_kernel(const char *sampler)
{
    em_model model = {.ops = &free_ops, .dim = DIM};
    const em_mass *masses[N_CHAIN];
    double steps[N_CHAIN], seconds;
    em_config *config = NULL;
    em_posterior *posterior = NULL;
    em_mass *mass = NULL;
    bench b = {.sampler = NULL};
    char yaml[256];

    snprintf(yaml, sizeof yaml,
             "model: {name: gaussian}\nsampler: {%s, leapfrog_steps: %d, step_size: 1e-6}\n",
             sampler, STEPS);
    require(em_config_parse("bench.yaml", yaml, 0, NULL, &config));
    const em_sampler_ops *ops = config->sampler;
    const void *options = config->sampler_options;
    require(em_posterior_create(&model, grid, N_CHAIN, &posterior));
    require(em_block_create(0, N_CHAIN, DIM, em_sampler_n_extra(ops, options, DIM), &b.block));
    require(em_sampler_create(ops, options, N_CHAIN, DIM, &b.sampler));
    require(em_mass_identity(EM_MASS_DIAG, DIM, &mass));
    for (int64_t c = 0; c < N_CHAIN; c++) {
        masses[c] = mass;
        steps[c] = 1e-6;
        for (int64_t i = 0; i < DIM; i++)
            b.block->theta[c * b.block->stride + i] = 1;
    }
    b.context =
        (em_step_context){.posterior = posterior, .mass = masses, .step_size = steps, .seed = 1};
    if (ops->refresh)
        require(ops->refresh(b.sampler, &b.context, b.block));
    seconds = seconds_per_call(iterate, &b) / (STEPS * N_CHAIN);
    em_sampler_destroy(&b.sampler);
    em_mass_destroy(&mass);
    em_block_destroy(&b.block);
    em_posterior_destroy(&posterior);
    em_config_destroy(&config);
    return seconds;
}

static double *a, *b, *c;

static void triad(void *scale)
{
    for (int64_t i = 0; i < TRIAD; i++)
        a[i] = b[i] + *(double *)scale * c[i];
}

static void draw(void *out)
{
    const em_stream stream = {.seed = 1, .purpose = EM_RNG_TEST};

    em_normals(&stream, DIM, out);
}

int main(int argc, char **argv)
{
    double scale = 3;

    if (em_world_start(&argc, &argv) || em_grid_create(N_CHAIN, 1, &grid))
        return EXIT_FAILURE;
    require(em_allocate(TRIAD, sizeof *a, &a));
    require(em_allocate(TRIAD, sizeof *b, &b));
    require(em_allocate(TRIAD, sizeof *c, &c));
    const double bytes_per_second = 24.0 * TRIAD / seconds_per_call(triad, &scale);
    const double normals = seconds_per_call(draw, a);
    print_figure("triad", bytes_per_second * 1e-9, "GB/s", NAN);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        const double seconds = time_kernel(kernels[k].sampler);
        const double least =
            kernels[k].passes * 8 * DIM / bytes_per_second + kernels[k].normals * normals;
        print_figure(kernels[k].sampler, seconds * 1e6, "us per step and chain", least / seconds);
    }
    em_release(&a);
    em_release(&b);
    em_release(&c);
    em_grid_destroy(&grid);
    em_world_stop();
    return EXIT_SUCCESS;
}
