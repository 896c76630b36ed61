/*
 * What it costs that densities do not depend on the number of shards: a gradient of the target,
 * summed over the parts of the data by binned sums, against the model's likelihood of all rows in
 * one go. One JSON line per figure; `ratio` is the second over the first, each the median of
 * REPETITIONS taken in turns, in CPU time.
 */
#include "bench.h"

#include "base/memory.h"
#include "math/rng.h"
#include "par/world.h"
#include "posterior/posterior.h"
#include "support/model_setup.h"

#include <unistd.h>

enum { REPETITIONS = 41, CHAINS = 8 };

static em_grid *grid;
static const int64_t chains[CHAINS] = {0, 1, 2, 3, 4, 5, 6, 7};

static void write_table(char *path, int64_t n_row, int64_t n_column)
{
    FILE *file = fopen(path, "w");
    double *x;

    if (!file || em_allocate_doubles(em_stride(n_column + 1), &x))
        exit(EXIT_FAILURE);
    for (int64_t i = 0; i < n_row; i++) {
        const em_stream stream = {1, (uint64_t)i, 0, EM_RNG_TEST};
        em_normals(&stream, n_column + 1, x);
        for (int64_t j = 0; j < n_column; j++)
            fprintf(file, "%.3f,", x[j]);
        fprintf(file, "%d\n", x[n_column] > 0);
    }
    em_release(&x);
    fclose(file);
}

/* `entries` of the columns in every row, a one each. */
static void write_sparse(char *path, int64_t n_row, int64_t n_column, int64_t entries)
{
    FILE *file = fopen(path, "w");

    for (int64_t i = 0; file && i < n_row; i++) {
        const em_stream stream = {2, (uint64_t)i, 0, EM_RNG_TEST};
        const int64_t apart = n_column / entries;
        fprintf(file, "%d", (int)(i % 2));
        for (int64_t k = 0; k < entries; k++)
            fprintf(file, " %lld:1",
                    (long long)(1 + k * apart +
                                (int64_t)em_uniform_below(&stream, (uint64_t)k, (uint64_t)apart)));
        fprintf(file, "\n");
    }
    if (!file || fclose(file))
        exit(EXIT_FAILURE);
}

/* Enough evaluations at a time for the clock. */
static int64_t evaluations(int64_t n_row, int64_t n_column, int64_t n_chain)
{
    const int64_t n = 2000000 / (n_row * n_column * n_chain) + 1;

    return n < 1000 ? n : 1000;
}

static void bench(const setup *s, const char *kind, int64_t n_row, int64_t n_column,
                  int64_t n_chain)
{
    const em_stream stream = {1, 0, 0, EM_RNG_TEST};
    const int64_t stride = em_stride(s->model->dim), n = evaluations(n_row, n_column, n_chain);
    double density[CHAINS], whole[REPETITIONS], parts[REPETITIONS], *theta, *gradient;
    em_posterior *posterior;

    if (em_posterior_create(s->model, grid, n_chain, &posterior) ||
        em_allocate_doubles(CHAINS * stride, &theta) ||
        em_allocate(CHAINS * stride, sizeof *gradient, &gradient))
        exit(EXIT_FAILURE);
    em_normals(&stream, CHAINS * stride, theta);
    const em_query query = {.n_chain = n_chain,
                            .stride = stride,
                            .chain = chains,
                            .theta = theta,
                            .log_density = density,
                            .gradient = gradient,
                            .rows = all_rows(s->model)};
    for (int r = 0; r < REPETITIONS; r++) {
        double start = seconds_now();
        for (int64_t k = 0; k < n; k++) {
            memset(gradient, 0, (size_t)(n_chain * stride) * sizeof *gradient);
            memset(density, 0, sizeof density);
            s->ops->add_prior(s->model, &query);
            s->ops->add_likelihood(s->model, &query);
        }
        whole[r] = (seconds_now() - start) / (double)n;
        start = seconds_now();
        for (int64_t k = 0; k < n; k++)
            em_posterior_evaluate(posterior, &query);
        parts[r] = (seconds_now() - start) / (double)n;
    }
    const double a = median_of(REPETITIONS, whole), b = median_of(REPETITIONS, parts);
    printf(
        "{\"name\": \"logistic%s %lld x %lld, %lld chains: gradient by parts, against all rows in "
        "one go\", \"value\": %.4g, \"unit\": \"us\", \"ratio\": %.3f}\n",
        kind, (long long)n_row, (long long)n_column, (long long)n_chain, 1e6 * b, b / a);
    em_release(&theta);
    em_release(&gradient);
    em_posterior_destroy(&posterior);
}

/* The same for a minibatch, against its rows in the order in which they were chosen. */
static void bench_minibatch(const setup *s, int64_t n_row, int64_t n_column, int64_t size)
{
    const em_stream stream = {1, 0, 0, EM_RNG_TEST};
    const int64_t stride = em_stride(s->model->dim);
    const int64_t n = evaluations(size, n_column, CHAINS);
    double density[CHAINS], time[2][REPETITIONS], *theta, *gradient;
    const em_minibatch minibatch = {.size = size};
    em_posterior *posterior[2];

    if (em_posterior_create(s->model, grid, CHAINS, &posterior[0]) ||
        em_posterior_create(s->model, grid, CHAINS, &posterior[1]) ||
        em_posterior_sum_by_parts(posterior[1]) || em_allocate_doubles(CHAINS * stride, &theta) ||
        em_allocate(CHAINS * stride, sizeof *gradient, &gradient))
        exit(EXIT_FAILURE);
    em_normals(&stream, CHAINS * stride, theta);
    em_query query = {.n_chain = CHAINS,
                      .stride = stride,
                      .chain = chains,
                      .theta = theta,
                      .log_density = density,
                      .gradient = gradient,
                      .seed = 1};
    for (int r = 0; r < REPETITIONS; r++)
        for (int way = 0; way < 2; way++) {
            const double start = seconds_now();
            for (int64_t k = 0; k < n; k++, query.evaluation++)
                em_posterior_estimate(posterior[way], &minibatch, &query);
            time[way][r] = (seconds_now() - start) / (double)n;
        }
    const double a = median_of(REPETITIONS, time[0]), b = median_of(REPETITIONS, time[1]);
    printf("{\"name\": \"logistic %lld x %lld, 8 chains: minibatch of %lld by parts, against as "
           "chosen\", \"value\": %.4g, \"unit\": \"us\", \"ratio\": %.3f}\n",
           (long long)n_row, (long long)n_column, (long long)size, 1e6 * b, b / a);
    em_release(&theta);
    em_release(&gradient);
    em_posterior_destroy(&posterior[0]);
    em_posterior_destroy(&posterior[1]);
}

int main(int argc, char **argv)
{
    static const int64_t rows[] = {270, 1000, 10000, 100000}, columns[] = {10, 100};
    char path[] = "/tmp/emass-bench-XXXXXX";
    const setting settings[] = {{"data", path}, {"intercept", "false"}, {NULL, NULL}};

    if (em_world_start(&argc, &argv) || em_grid_create(CHAINS, 1, &grid))
        return EXIT_FAILURE;
    close(mkstemp(path));
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < 4; i++) {
            setup s;
            write_table(path, rows[i], columns[j]);
            if (try_setup("logistic", settings, 0, 1, &s))
                return EXIT_FAILURE;
            bench(&s, "", rows[i], columns[j], 1);
            bench(&s, "", rows[i], columns[j], CHAINS);
            for (int64_t size = 100; size <= 1000 && size < rows[i]; size *= 10)
                bench_minibatch(&s, rows[i], columns[j], size);
            teardown(&s);
        }
    for (int i = 0; i < 2; i++) {
        static const int64_t width[] = {100, 20000};
        setup s;
        write_sparse(path, 30000, width[i], 10);
        if (try_setup("logistic", settings, 0, 1, &s))
            return EXIT_FAILURE;
        bench(&s, ", 10 entries in a row,", 30000, width[i], 1);
        bench(&s, ", 10 entries in a row,", 30000, width[i], CHAINS);
        teardown(&s);
    }
    unlink(path);
    em_grid_destroy(&grid);
    em_world_stop();
    return EXIT_SUCCESS;
}
