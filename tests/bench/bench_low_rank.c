/*
 * What a mass of low rank is worth beyond the dimensions of a dense one, and what it costs: a
 * Gaussian of a few directions among many coordinates, precisions from 1/100 to 100, the others 1.
 */
#include "bench.h"

#include "base/memory.h"
#include "mass/mass.h"
#include "math/linalg.h"
#include "math/rng.h"
#include "par/world.h"
#include "run/loop/driver.h"

#include <unistd.h>

enum { DIRECTIONS = 6, CHAINS = 4 };

/* DIRECTIONS orthonormal rows. */
static void some_directions(int64_t dim, double *v)
{
    for (int64_t k = 0; k < DIRECTIONS; k++) {
        const em_stream stream = {1, (uint64_t)k, 0, EM_RNG_TEST};
        em_normals(&stream, dim, v + k * em_stride(dim));
    }
    em_orthonormalise(DIRECTIONS, dim, v, em_stride(dim));
}

/* I + V^T (lambda - 1) V, as a table. */
static void write_precision(int64_t dim, const char *path)
{
    FILE *out = fopen(path, "w");
    double *v = NULL;

    require(out ? EM_OK : em_fail(EM_EDATA, "%s: cannot be written", path));
    require(em_allocate(DIRECTIONS * em_stride(dim), sizeof *v, &v));
    some_directions(dim, v);
    for (int64_t i = 0; i < dim; i++)
        for (int64_t j = 0; j < dim; j++) {
            double sum = i == j;
            for (int k = 0; k < DIRECTIONS; k++)
                sum += (pow(1e4, k / (DIRECTIONS - 1.0) - 0.5) - 1) *
                       (v[k * em_stride(dim) + (i < j ? i : j)] *
                        v[k * em_stride(dim) + (i < j ? j : i)]);
            fprintf(out, "%.17g%c", sum, j + 1 < dim ? ',' : '\n');
        }
    em_release(&v);
    fclose(out);
}

enum { MOST_SEEDS = 3 };

/* The smallest ESS per gradient of the draws, the median over seeds. */
static double ess_per_gradient(const char *precision, const char *sampler, const char *structure,
                               int n_seed)
{
    double ess[MOST_SEEDS];

    for (int seed = 1; seed <= n_seed; seed++) {
        char yaml[1024];
        em_config *config = NULL;
        em_report report;
        snprintf(yaml, sizeof yaml,
                 "model: {name: gaussian, precision: %s}\nsampler: {name: %s}\n"
                 "mass: {structure: %s}\nrun: {chains: %d, warmup: 400, draws: 250, seed: %d}\n",
                 precision, sampler, structure, CHAINS, seed);
        require(em_config_parse("bench.yaml", yaml, 0, NULL, &config));
        require(em_sample(config, &(em_engine_request){.mode = EM_RUN_NO_FILE}, &report));
        ess[seed - 1] = report.convergence.ess / (double)report.evaluations;
        em_config_destroy(&config);
    }
    qsort(ess, (size_t)n_seed, sizeof *ess, compare_doubles);
    return ess[n_seed / 2];
}

static void worth(int64_t dim, const char *sampler, int n_seed)
{
    char precision[] = "/tmp/bench_precision_XXXXXX", name[128];

    close(mkstemp(precision));
    write_precision(dim, precision);
    const double diag = ess_per_gradient(precision, sampler, "diag", n_seed);
    const double low_rank = ess_per_gradient(precision, sampler, "low_rank", n_seed);
    snprintf(name, sizeof name, "ESS per gradient, dim %lld, %s, low rank (against diag)",
             (long long)dim, sampler);
    print_figure(name, low_rank, "ESS/gradient", low_rank / diag);
    unlink(precision);
}

/* ---------------------------------------------------------------- the products */

typedef struct product {
    const em_mass *mass[8];
    double *x, *y;
} product;

static void velocities(void *data)
{
    const product *p = data;

    em_mass_velocity(p->mass, 8, p->x, p->y);
}

static double seconds_of(const em_mass_form *form, const double *number)
{
    const int64_t panel = 8 * em_stride(form->dim);
    em_mass *mass = NULL;
    product p = {.x = NULL};

    require(em_mass_of(form, number, &mass));
    require(em_allocate(2 * panel, sizeof *p.x, &p.x));
    p.y = p.x + panel;
    for (int i = 0; i < 8; i++)
        p.mass[i] = mass;
    const double seconds = seconds_per_call(velocities, &p) / 8;
    em_mass_destroy(&mass);
    em_release(&p.x);
    return seconds;
}

/* Products of rank DIRECTIONS with 8 chains, against dense ones. */
static void cost(int64_t dim)
{
    const em_mass_form low_rank = {.ops = &em_mass_low_rank, .dim = dim, .most_rank = DIRECTIONS};
    const em_mass_form dense = {.ops = &em_mass_dense, .dim = dim};
    double *number = NULL, *v = NULL;
    char name[128];

    require(em_allocate(dim * dim, sizeof *number, &number));
    require(em_allocate(DIRECTIONS * em_stride(dim), sizeof *v, &v));
    for (int64_t i = 0; i < dim; i++)
        number[i * (dim + 1)] = 1;
    const double whole = seconds_of(&dense, number);
    some_directions(dim, v);
    for (int64_t i = 0; i < dim; i++)
        number[i] = 1;
    for (int64_t k = 0; k < DIRECTIONS; k++) {
        number[dim + k] = 3;
        for (int64_t i = 0; i < dim; i++)
            number[dim + DIRECTIONS + k * dim + i] = v[k * em_stride(dim) + i];
    }
    const double few = seconds_of(&low_rank, number);
    snprintf(name, sizeof name, "velocity of a chain, dim %lld, rank %d (against dense)",
             (long long)dim, DIRECTIONS);
    print_figure(name, 1e6 * few, "us", few / whole);
    em_release(&number);
    em_release(&v);
}

int main(int argc, char **argv)
{
    if (em_world_start(&argc, &argv))
        return EXIT_FAILURE;
    cost(300);
    cost(1000);
    worth(300, "hmc", 3);
    worth(300, "nuts", 3);
    worth(1000, "hmc", 1);
    em_world_stop();
    return EXIT_SUCCESS;
}
