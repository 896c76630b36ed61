/*
 * Speed of the logistic model, one JSON line per figure. A panel of eight chains shares one pass
 * over the data: `ratio` is how many times cheaper a chain is than alone (the goal is 3 on dense
 * data), or what the name states. Each time is the median of REPETITIONS, in CPU time.
 */
#include "base/memory.h"
#include "math/rng.h"
#include "model_setup.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

enum { REPETITIONS = 11, N_ROW = 32561, N_COLUMN = 123, CHAINS = 8 };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print(const char *name, double value, const char *unit, double ratio)
{
    printf("{\"name\": \"%s\", \"value\": %.4g, \"unit\": \"%s\", \"ratio\": ", name, value, unit);
    printf(isfinite(ratio) ? "%.3g}\n" : "null}\n", ratio);
}

static setup create(const setting *settings)
{
    setup s;

    if (try_setup("logistic", settings, 0, 1, &s)) {
        fprintf(stderr, "%s\n", em_error_text());
        exit(EXIT_FAILURE);
    }
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
        const double start = now();
        s->ops->add_likelihood(s->model, &query);
        time[r] = (now() - start) / (double)n_chain;
    }
    qsort(time, REPETITIONS, sizeof *time, compare);
    em_release(&theta);
    em_release(&gradient);
    return time[REPETITIONS / 2];
}

/* A table of N_ROW x N_COLUMN of which a share `density` is there, as LIBSVM writes it. */
static void write_table(const char *path, double density, double value)
{
    FILE *file = fopen(path, "w");

    for (int64_t i = 0; i < N_ROW; i++) {
        const em_stream stream = {2, (uint64_t)i, 0, EM_RNG_TEST};
        double u[N_COLUMN + 1];
        em_uniforms(&stream, 0, N_COLUMN + 1, u);
        fprintf(file, "%d", u[N_COLUMN] < 0.5);
        for (int j = 0; j < N_COLUMN; j++)
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
    print(name, 1e3 * alone, "ms", NAN);
    snprintf(name, sizeof name, "%s: gradient of each of 8 chains, vs alone", what);
    print(name, 1e3 * together, "ms", alone / together);
    return together;
}

static void bench_minibatch(const setup *s)
{
    int64_t index[100];
    double all = seconds_per_chain(s, CHAINS, NULL), part;

    for (int i = 0; i < 100; i++)
        index[i] = (int64_t)i * 7919 % N_ROW;
    part = seconds_per_chain(s, CHAINS, &(em_rows){.count = 100, .index = index});
    print("logistic dense: minibatch of 100, each of 8 chains, vs 100 rows of a full pass",
          1e6 * part, "us", all * 100 / N_ROW / part);
}

static void bench_dense(char *path)
{
    const setting settings[] = {{"data", path}, {NULL, NULL}};
    setup s;

    write_table(path, 1, 1);
    s = create(settings);
    bench_panel("logistic dense 32561 x 124", &s);
    bench_minibatch(&s);
    teardown(&s);
}

static void bench_a9a(void)
{
    char path[512];
    const setting settings[] = {{"data", path}, {"columns", "123"}, {NULL, NULL}};
    double start = now();
    setup s;

    if (!getenv("EMASS_DATA"))
        return;
    snprintf(path, sizeof path, "%s/a9a/a9a.gz", getenv("EMASS_DATA"));
    if (access(path, R_OK) != 0)
        return;
    s = create(settings);
    print("logistic a9a: create, reading the gzipped file", 1e3 * (now() - start), "ms", NAN);
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
        write_table(path, density[i], 1 / density[i]);
        a = create(sparse);
        b = create(dense);
        time = seconds_per_chain(&a, CHAINS, NULL);
        snprintf(name, sizeof name, "logistic sparse, density %.2f: each of 8 chains, vs dense",
                 density[i]);
        print(name, 1e3 * time, "ms", seconds_per_chain(&b, CHAINS, NULL) / time);
        snprintf(name, sizeof name, "logistic sparse, density %.2f: 1 chain, vs dense", density[i]);
        time = seconds_per_chain(&a, 1, NULL);
        print(name, 1e3 * time, "ms", seconds_per_chain(&b, 1, NULL) / time);
        teardown(&a);
        teardown(&b);
    }
}

int main(void)
{
    char path[] = "/tmp/emass-bench-XXXXXX";

    close(mkstemp(path));
    bench_dense(path);
    bench_a9a();
    bench_densities(path);
    unlink(path);
    return EXIT_SUCCESS;
}
