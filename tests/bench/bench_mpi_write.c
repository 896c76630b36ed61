/*
 * The writer against MPI alone: 8 chains x 1000 draws x 1000 numbers in flushes of 100 draws,
 * beside one collective write per flush of the same bytes, divided among the ranks and laid out in
 * the file in the same way. Ratio: our bandwidth over theirs.
 */
#include "bench.h"

#include "base/memory.h"
#include "io/draws/writer.h"
#include "par/mpi_world.h"
#include "par/world.h"

#include <unistd.h>

enum { N_CHAIN = 8, N_DRAW = 1000, N_FLUSH = 100, WIDTH = 1000, REPEATS = 5, PASSES = 10 };

static const char path[] = "bench_write.h5";
static const double megabytes = 8e-6 * N_CHAIN * N_DRAW * WIDTH;

static double start_together(const em_grid *grid)
{
    MPI_Barrier(em_grid_world(grid));
    return em_clock();
}

static double end_together(const em_grid *grid, double start)
{
    MPI_Barrier(em_grid_world(grid));
    return em_clock() - start;
}

/* Seconds to write all draws, into a file that has its length already: the best of some passes. */
static double seconds_by_writer(const em_grid *grid, const double *value)
{
    const em_variable series = {.name = "beta", .n_axes = 1, .shape = {WIDTH}};
    em_writer *writer;
    double best = INFINITY;
    int group;

    require(em_writer_create(grid, path, true, &writer));
    require(em_writer_add_draws(writer, "posterior", 1, &series,
                                (em_draw_space){N_DRAW, N_FLUSH, 0}, &group));
    for (int pass = 0; pass < PASSES; pass++) {
        const double start = start_together(grid);
        for (int64_t first = 0; first < N_DRAW; first += N_FLUSH)
            require(em_writer_put_draws(writer, group, first, N_FLUSH, value));
        best = fmin(best, end_together(grid, start));
    }
    require(em_writer_close(&writer, true));
    return best;
}

/* A chunk of every chain of this rank per flush, the chunks of a chain one after the other. */
static MPI_Datatype chunks_of_flush(const em_grid *grid)
{
    MPI_Datatype type;

    MPI_Type_vector((int)em_grid_n_local_chain(grid), N_FLUSH * WIDTH, N_DRAW * WIDTH, MPI_DOUBLE,
                    &type);
    MPI_Type_commit(&type);
    return type;
}

static void put_by_mpi(const em_grid *grid, MPI_File file, MPI_Datatype chunks, const double *value)
{
    const int64_t first_chain = em_grid_first_chain(grid);
    const int count = (int)em_grid_n_local_chain(grid) * N_FLUSH * WIDTH;

    for (int64_t first = 0; first < N_DRAW; first += N_FLUSH) {
        MPI_File_set_view(file, 8 * WIDTH * (first_chain * N_DRAW + first), MPI_DOUBLE, chunks,
                          "native", MPI_INFO_NULL);
        MPI_File_write_at_all(file, 0, value, count, MPI_DOUBLE, MPI_STATUS_IGNORE);
    }
}

static double seconds_by_mpi(const em_grid *grid, const double *value)
{
    MPI_Datatype chunks = chunks_of_flush(grid);
    double best = INFINITY;
    MPI_File file;

    MPI_File_open(em_grid_world(grid), path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_size(file, 0);
    put_by_mpi(grid, file, chunks, value);
    for (int pass = 0; pass < PASSES; pass++) {
        const double start = start_together(grid);
        put_by_mpi(grid, file, chunks, value);
        best = fmin(best, end_together(grid, start));
    }
    MPI_File_close(&file);
    MPI_Type_free(&chunks);
    return best;
}

int main(int argc, char **argv)
{
    double ours = INFINITY, theirs = INFINITY;
    char name[64];
    em_grid *grid;
    double *value;

    if (em_world_start(&argc, &argv) || em_grid_create(N_CHAIN, 1, &grid))
        return EXIT_FAILURE;
    const int64_t n = em_grid_n_local_chain(grid) * N_FLUSH * WIDTH;
    require(em_allocate_doubles(n, &value));
    for (int64_t i = 0; i < n; i++)
        value[i] = (double)i;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        ours = fmin(ours, seconds_by_writer(grid, value));
        theirs = fmin(theirs, seconds_by_mpi(grid, value));
    }
    if (em_world_rank() == 0) {
        unlink(path);
        snprintf(name, sizeof name, "draws written on %d ranks", em_world_size());
        print_figure(name, megabytes / ours, "MB/s", theirs / ours);
    }
    em_release(&value);
    em_grid_destroy(&grid);
    em_world_stop();
    return EXIT_SUCCESS;
}
