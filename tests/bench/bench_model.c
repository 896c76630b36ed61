/*
 * Speed of the regression models, one JSON line per figure. A panel of eight chains shares one pass
 * over the data: `ratio` is how many times cheaper a chain is than alone (the goal is 3 on dense
 * data), or what the name states. Each time is the median of REPETITIONS, in CPU time.
 */
#include "bench.h"

#include "base/memory.h"
#include "math/rng.h"
#include "support/model_setup.h"

#include <unistd.h>

enum { REPETITIONS = 11, N_ROW = 32561, N_COLUMN = 123, CHAINS = 8 };

static setup create(const char *name, const setting *settings)
{
    setup s;

    require(try_setup(name, settings, 0, 1, &s));
    return s;
}

/* Median seconds per chain of one gradient for `n_chain` chains; rows NULL: of all. */
static double seconds_per_chain(const setup *s, int64_t n_chain, const em_rows *rows)
{
    const em_stream stream = {1, 0, 0, EM_RNG_TEST};
    const int64_t stride = em_stride(s->model->dim);
    double time[REPETITIONS], log_density[CHAINS] = {0}, *theta, *gradient;

    if (em_allocate_doubles(CHAINS * stride, &theta) ||
        em_allocate(CHAINS * stride, sizeof *gradient, &gradient))
        exit(EXIT_FAILURE);
    em_normals(&stream, CHAINS * stride, theta);
    const em_query query = {.n_chain = n_chain,
                            .stride = stride,
                            .theta = theta,
                            .log_density = log_density,
                            .gradient = gradient,
                            .rows = rows ? *rows : all_rows(s->model)};
    for (int r = 0; r < REPETITIONS; r++) {
        const double start = seconds_now();
        s->ops->add_likelihood(s->model, &query);
        time[r] = (seconds_now() - start) / (double)n_chain;
    }
    em_release(&theta);
    em_release(&gradient);
    return median_of(REPETITIONS, time);
}

/* A table of N_ROW rows, of whose columns a share `density` is there, as LIBSVM writes it. */
static void write_table(const char *path, int n_column, double density, double value)
{
    FILE *file = fopen(path, "w");

    for (int64_t i = 0; i < N_ROW; i++) {
        const em_stream stream = {2, (uint64_t)i, 0, EM_RNG_TEST};
        double u[N_COLUMN + 1];
        em_uniforms(&stream, 0, N_COLUMN + 1, u);
        fprintf(file, "%d", u[N_COLUMN] < 0.5);
        for (int j = 0; j < n_column; j++)
            if (u[j] < density)
                fprintf(file, " %d:%.3f", j + 1, value * u[j]);
        fputs("\n", file);
    }
    fclose(file);
}

static double bench_panel(const char *what, const setup *s)
{
    double alone = seconds_per_chain(s, 1, NULL), together = seconds_per_chain(s, CHAINS, NULL);
    char name[128];

    snprintf(name, sizeof name, "%s: gradient of 1 chain", what);
    print_figure(name, 1e3 * alone, "ms", NAN);
    snprintf(name, sizeof name, "%s: gradient of each of 8 chains, vs alone", what);
    print_figure(name, 1e3 * together, "ms", alone / together);
    return together;
}

static void bench_minibatch(const setup *s)
{
    int64_t index[100];
    double all = seconds_per_chain(s, CHAINS, NULL), part;

    for (int i = 0; i < 100; i++)
        index[i] = (int64_t)i * 7919 % N_ROW;
    part = seconds_per_chain(s, CHAINS, &(em_rows){.count = 100, .index = index});
    print_figure("logistic dense: minibatch of 100, each of 8 chains, vs 100 rows of a full pass",
                 1e6 * part, "us", all * 100 / N_ROW / part);
}

static void bench_dense(char *path)
{
    const setting settings[] = {{"data", path}, {NULL, NULL}};
    setup s;

    write_table(path, N_COLUMN, 1, 1);
    s = create("logistic", settings);
    bench_panel("logistic dense 32561 x 124", &s);
    bench_minibatch(&s);
    teardown(&s);
}

static void bench_a9a(void)
{
    char path[512];
    const setting settings[] = {{"data", path}, {"columns", "123"}, {NULL, NULL}};
    double start = seconds_now();
    setup s;

    if (!getenv("EMASS_DATA"))
        return;
    snprintf(path, sizeof path, "%s/a9a/a9a.gz", getenv("EMASS_DATA"));
    if (access(path, R_OK) != 0)
        return;
    s = create("logistic", settings);
    print_figure("logistic a9a: create, reading the gzipped file", 1e3 * (seconds_now() - start),
                 "ms", NAN);
    bench_panel("logistic a9a sparse, 14 of 124", &s);
    teardown(&s);
}

/* What sparse storage gains, up to the density where it is given up (EM_SPARSE_DENSITY). */
static void bench_densities(char *path)
{
    static const double density[] = {0.05, 0.1, 0.149};
    const setting sparse[] = {{"data", path}, {NULL, NULL}},
                  dense[] = {{"data", path}, {"standardise", "true"}, {NULL, NULL}};
    char name[128];

    for (size_t i = 0; i < sizeof density / sizeof *density; i++) {
        setup a, b;
        double time;
        write_table(path, N_COLUMN, density[i], 1 / density[i]);
        a = create("logistic", sparse);
        b = create("logistic", dense);
        time = seconds_per_chain(&a, CHAINS, NULL);
        snprintf(name, sizeof name, "logistic sparse, density %.2f: each of 8 chains, vs dense",
                 density[i]);
        print_figure(name, 1e3 * time, "ms", seconds_per_chain(&b, CHAINS, NULL) / time);
        snprintf(name, sizeof name, "logistic sparse, density %.2f: 1 chain, vs dense", density[i]);
        time = seconds_per_chain(&a, 1, NULL);
        print_figure(name, 1e3 * time, "ms", seconds_per_chain(&b, 1, NULL) / time);
        teardown(&a);
        teardown(&b);
    }
}

/* What a link costs shows where there are few columns. */
static void bench_families(char *path, int n_column)
{
    const struct {
        const char *name, *title;
        setting settings[4];
    } families[] = {
        {"logistic", "logistic", {{"data", path}}},
        {"poisson", "poisson", {{"data", path}}},
        {"negative_binomial", "negative_binomial", {{"data", path}}},
        {"negative_binomial", "negative_binomial, phi known", {{"data", path}, {"phi", "2"}}},
        {"linear", "linear, unknown sigma, by rows", {{"data", path}, {"sigma", "unknown"}}},
        {"linear",
         "linear, student_t, unknown sigma and nu",
         {{"data", path}, {"noise", "student_t"}, {"sigma", "unknown"}}},
    };
    double logistic = NAN;

    write_table(path, n_column, 1, 0.1);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        setup s = create(families[i].name, families[i].settings);
        const double rows = N_ROW / seconds_per_chain(&s, CHAINS, NULL);
        char name[128];
        logistic = i == 0 ? rows : logistic;
        snprintf(name, sizeof name, "%s, %d columns: rows of each of 8 chains, vs logistic",
                 families[i].title, n_column + 1);
        print_figure(name, 1e-6 * rows, "million/s", rows / logistic);
        teardown(&s);
    }
}

int main(void)
{
    char path[] = "/tmp/emass-bench-XXXXXX";

    close(mkstemp(path));
    bench_dense(path);
    bench_a9a();
    bench_densities(path);
    bench_families(path, 7);
    bench_families(path, N_COLUMN);
    unlink(path);
    return EXIT_SUCCESS;
}
