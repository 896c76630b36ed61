/*
 * The output file on 1, 2, 3, 4 ranks. With a path as argument, the program only writes the sample
 * file of these tests there, for tests/run/arviz_opens.py to look at.
 */
#include "base/fault.h"
#include "base/memory.h"
#include "io/reader.h"
#include "io/writer.h"
#include "par/grid.h"
#include "par/world.h"

#include <check.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N_CHAIN = 8, N_DRAW = 20, N_CHUNK = 8, MU = 0, THETA = 1, BETA = 4, STEPS = 28, FLAG = 29 };
enum { WIDTH = 30, LONG_TEXT = 100000 };

static const char *const schools[] = {"Choate", "Phillips Exeter", "St. Paul\xe2\x80\x99s"};
static const em_series all_series[] = {
    {{.name = "mu"}, EM_STORE_REAL},
    {{.name = "theta", .n_axes = 1, .shape = {3}, .axis = {"school"}, .label = {schools}},
     EM_STORE_REAL},
    {{.name = "beta", .n_axes = 3, .shape = {2, 3, 4}, .axis = {[1] = "school"}, .label = {[1] = schools}},
     EM_STORE_REAL},
    {{.name = "n_steps"}, EM_STORE_INT},
    {{.name = "diverging"}, EM_STORE_BOOL},
};
static const em_series one_series[] = {{{.name = "w", .n_axes = 1, .shape = {5}}, EM_STORE_REAL}};

/* Ranks must fail together: a rank that leaves a test alone would leave the others waiting. */
static bool all_agree(bool mine) {
    int good = mine;

    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return good;
}
#define check_all(condition) ck_assert_msg(all_agree(condition), "%s: %s", #condition, em_error_text())

/* What is stored: distinct numbers, whole where they have to be. */
static double number(int64_t chain, int64_t draw, int64_t column) {
    if (column == STEPS)
        return (double)(100 * chain + draw);
    if (column == FLAG)
        return (chain + draw) % 3 == 0;
    return (double)chain + (double)draw / 64 + (double)column / 8192;
}

static em_status put(em_writer *writer, const em_grid *grid, int group, int64_t first, int64_t n, int64_t width) {
    const int64_t n_chain = em_grid_n_local_chain(grid);
    double *value;
    em_status status = em_agree(em_allocate_doubles(n_chain * n * width, &value));

    for (int64_t c = 0; c < n_chain && !status; c++)
        for (int64_t d = 0; d < n; d++)
            for (int64_t k = 0; k < width; k++)
                value[(c * n + d) * width + k] = number(em_grid_first_chain(grid) + c, first + d, k);
    if (!status)
        status = em_writer_put_draws(writer, group, first, n, value);
    em_release(&value);
    return status;
}

static em_status put_rest(em_writer *writer) {
    static const double matrix[] = {1, 2, 3, 4, 5, 6};
    const em_variable inv_mass = {.name = "inv_mass", .n_axes = 2, .shape = {2, 3}};
    const em_variable effect = {.name = "effect", .n_axes = 1, .shape = {3}, .axis = {"school"}, .label = {schools}};
    const em_variable count = {.name = "count"};
    char *text;
    em_status status = em_agree(em_allocate(LONG_TEXT + 1, 1, &text));

    if (!status) {
        memset(text, 'x', LONG_TEXT);
        status = em_writer_put_text(writer, "config", text);
    }
    em_release(&text);
    if (!status)
        status = em_writer_put_text(writer, "verdict", "not yet");
    if (!status)
        status = em_writer_put_text(writer, "verdict", "converged: R\xcc\x82 = 1.00");
    if (!status)
        status = em_writer_put_int(writer, "seed", 42);
    if (!status)
        status = em_writer_put_real(writer, "sampling_time", 0.5);
    if (!status)
        status = em_writer_put_array(writer, "inv_mass", &inv_mass, EM_STORE_REAL, matrix);
    if (!status)
        status = em_writer_put_array(writer, "observed_data", &effect, EM_STORE_REAL, matrix);
    if (!status)
        status = em_writer_put_array(writer, "observed_data", &count, EM_STORE_INT, matrix + 5);
    return status;
}

/* Two groups of draws in flushes that do not match the chunks, cut to `kept` draws. */
static em_status write_sample(const em_grid *grid, const char *path, int64_t planned, int64_t kept) {
    em_writer *writer = NULL;
    int first = -1, second = -1;
    em_status closed, status = em_writer_create(grid, path, true, &writer);

    if (!status)
        status = em_writer_add_draws(writer, "posterior", 5, all_series, planned, N_CHUNK, &first);
    if (!status)
        status = em_writer_add_draws(writer, "warmup_posterior", 1, one_series, 7, N_CHUNK, &second);
    for (int64_t d = 0; d < N_DRAW && !status; d += 7)
        status = put(writer, grid, first, d, d + 7 < N_DRAW ? 7 : N_DRAW - d, WIDTH);
    if (!status)
        status = put(writer, grid, second, 0, 7, 5);
    if (!status && kept != planned)
        status = em_writer_truncate(writer, first, kept);
    if (!status)
        status = put_rest(writer);
    closed = em_writer_close(&writer, !status);
    return status ? status : closed;
}

int main(int argc, char **argv) {
    em_grid *grid = NULL;
    em_status status;

    em_world_start(&argc, &argv);
    status = em_grid_create(argc > 2 ? atoi(argv[2]) : N_CHAIN, argc > 3 ? atoi(argv[3]) : 1, &grid);
    if (!status)
        status = write_sample(grid, argv[1], argc > 4 ? atoi(argv[4]) : N_DRAW, argc > 5 ? atoi(argv[5]) : N_DRAW);
    if (status && em_world_rank() == 0)
        fprintf(stderr, "%s\n", em_error_text());
    em_grid_destroy(&grid);
    em_world_stop();
    return em_exit_status(status);
}
