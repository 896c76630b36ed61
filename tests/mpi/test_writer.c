/*
 * The output file on 1, 2, 3, 4 ranks, and what a failing rank leaves behind. With arguments FILE
 * CHAINS SHARDS PLANNED KEPT the program only writes the sample file of these tests, for
 * tests/run/arviz_opens.py to look at.
 */
#include "base/fault.h"
#include "base/memory.h"
#include "io/draws/reader.h"
#include "io/draws/writer.h"
#include "par/grid.h"
#include "par/world.h"
#include "support/tap.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { N_DRAW = 20, N_CHUNK = 8, N_WARMUP = 7, LONG_TEXT = 100000 };
enum { STEPS = 28, FLAG = 29, WIDTH = 30, W_WIDTH = 5 }; /* columns of a draw */

static const char *const school[] = {"Choate", "Phillips Exeter", "St. Paul\xe2\x80\x99s"};
/* Longer than any buffer, empty, of other scripts, and no UTF-8 at all. */
#define TEN "0123456789"
static const char *const word[] = {TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
                                       TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN,
                                   "", "\xe8\xaa\x9e", "a\nb", "caf\xe9"};
static const em_variable posterior[] = {
    {.name = "mu"},
    {.name = "theta", .n_axes = 1, .shape = {3}, .axis = {"school"}, .label = {school}},
    {.name = "beta",
     .n_axes = 3,
     .shape = {2, 3, 4},
     .axis = {[1] = "school"},
     .label = {[1] = school}},
    {.name = "n_steps", .storage = EM_STORE_INT},
    {.name = "diverging", .storage = EM_STORE_BOOL},
};
static const em_variable stats[] = {{.name = "lp"}};
static const em_variable warmup[] = {{.name = "w", .n_axes = 1, .shape = {W_WIDTH}}};

static const char *path;

/* Ranks fail together: one that left a test alone would leave the others waiting. */
static bool all_agree(bool mine)
{
    int good = mine;

    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return good;
}
#define check_all(condition)                                                                       \
    ck_assert_msg(all_agree(condition), "%s: %s", #condition, em_error_text())

/* What is stored: distinct numbers, whole where they have to be. */
static double number(int64_t chain, int64_t draw, int64_t column)
{
    if (column == STEPS)
        return (double)(100 * chain + draw);
    if (column == FLAG)
        return (chain + draw) % 3 == 0;
    return (double)chain + (double)draw / 64 + (double)column / 8192;
}

/* ---------------------------------------------------------------- the sample file */

static em_status put(em_writer *writer, const em_grid *grid, int group, int64_t first, int64_t n,
                     int64_t width)
{
    const int64_t first_chain = em_grid_first_chain(grid), n_chain = em_grid_n_local_chain(grid);
    double *value;
    em_status status = em_agree(em_allocate_doubles(n_chain * n * width, &value));

    for (int64_t i = 0; i < n_chain * n * width && !status; i++)
        value[i] = number(first_chain + i / (n * width), first + i / width % n, i % width);
    if (!status)
        status = em_writer_put_draws(writer, group, first, n, value);
    em_release(&value);
    return status;
}

static em_status put_attributes(em_writer *writer)
{
    char *text;
    em_status status = em_agree(em_allocate(LONG_TEXT + 1, 1, &text));

    if (!status) {
        memset(text, 'x', LONG_TEXT);
        status = em_writer_put_text(writer, "config", text);
    }
    em_release(&text);
    if (!status)
        status = em_writer_put_text(writer, "verdict", "none yet");
    if (!status)
        status = em_writer_put_text(writer, "verdict", "converged: R\xcc\x82 is 1.00");
    if (!status)
        status = em_writer_put_int(writer, "seed", 42);
    return status ? status : em_writer_put_real(writer, "worst_r_hat", 1.5);
}

static em_status put_arrays(em_writer *writer)
{
    static const double value[] = {1, 2, 3, 4, 5, 6};
    const em_variable matrix = {.name = "inv_mass", .n_axes = 2, .shape = {2, 3}};
    const em_variable count = {.name = "count", .storage = EM_STORE_INT};
    const em_variable effect = {
        .name = "effect", .n_axes = 1, .shape = {3}, .axis = {"school"}, .label = {school}};
    const em_variable size = {
        .name = "size", .n_axes = 1, .shape = {5}, .axis = {"word"}, .label = {word}};
    const em_variable alone = {
        .name = "alone", .n_axes = 1, .shape = {1}, .axis = {"only"}, .label = {word + 1}};
    em_status status = em_writer_put_array(writer, "inv_mass", &matrix, value);

    if (!status)
        status = em_writer_put_array(writer, "observed_data", &effect, value);
    if (!status)
        status = em_writer_put_array(writer, "constant_data", &size, value);
    if (!status)
        status = em_writer_put_array(writer, "constant_data", &alone, value);
    return status ? status : em_writer_put_array(writer, "observed_data", &count, value + 5);
}

/* Draws of three groups, in flushes that do not match the chunks. */
static em_status put_groups(em_writer *writer, const em_grid *grid, int64_t planned, int64_t kept)
{
    const em_draw_space space = {planned, N_CHUNK, 0}, of_warmup = {N_WARMUP, N_CHUNK, N_WARMUP};
    int draws = -1, lp = -1, before = -1;
    em_status status = em_writer_add_draws(writer, "posterior", 5, posterior, space, &draws);

    if (!status)
        status = em_writer_add_draws(writer, "sample_stats", 1, stats, space, &lp);
    if (!status)
        status = em_writer_add_draws(writer, "warmup_posterior", 1, warmup, of_warmup, &before);
    for (int64_t d = 0; d < N_DRAW && !status; d += 7) {
        const int64_t n = d + 7 < N_DRAW ? 7 : N_DRAW - d;
        status = put(writer, grid, draws, d, n, WIDTH);
        if (!status)
            status = put(writer, grid, lp, d, n, 1);
    }
    if (!status)
        status = put(writer, grid, before, 0, N_WARMUP, W_WIDTH);
    if (!status) {
        em_writer_truncate(writer, lp, kept);
        em_writer_truncate(writer, draws, kept);
    }
    return status;
}

static em_status write_sample(const em_grid *grid, int64_t planned, int64_t kept)
{
    em_writer *writer = NULL;
    em_status closed, status = em_writer_create(grid, path, true, &writer);

    if (!status)
        status = put_groups(writer, grid, planned, kept);
    if (!status)
        status = put_attributes(writer);
    if (!status)
        status = put_arrays(writer);
    closed = em_writer_close(&writer, !status);
    return status ? status : closed;
}

/* ---------------------------------------------------------------- reading it back */

/* One variable as it should be: out[element][chain][draw]. */
static bool holds(em_reader *reader, int64_t i, int64_t column, int64_t n_chain, int64_t n_draw)
{
    const int64_t size = em_reader_variable_at(reader, i)->size;
    double *value = NULL;
    bool good = em_allocate_doubles(size * n_chain * n_draw, &value) == EM_OK &&
                em_reader_elements(reader, i, 0, size, value) == EM_OK;

    for (int64_t k = 0; k < size * n_chain * n_draw && good; k++)
        good = value[k] == number(k / n_draw % n_chain, k % n_draw, column + k / n_draw / n_chain);
    em_release(&value);
    return good;
}

static bool group_holds(const char *group, int64_t n_variable, int64_t n_chain, int64_t n_draw)
{
    em_reader *reader;
    bool good = em_reader_open(path, group, &reader) == EM_OK;

    if (!good)
        return false;
    good = em_reader_n_variable(reader) == n_variable && em_reader_n_chain(reader) == n_chain &&
           em_reader_n_draw(reader) == n_draw;
    for (int64_t i = 0, column = 0; i < n_variable && good; i++) {
        good = holds(reader, i, column, n_chain, n_draw);
        column += em_reader_variable_at(reader, i)->size;
    }
    em_reader_close(&reader);
    return good;
}

static bool attributes_hold(void)
{
    em_reader *reader;
    char *config = NULL, *verdict = NULL;
    int64_t complete = 0, seed = 0;
    bool good = em_reader_open(path, "posterior", &reader) == EM_OK;

    good = good && em_reader_int(reader, "complete", &complete) && complete == 1 &&
           em_reader_int(reader, "seed", &seed) && seed == 42 &&
           em_reader_text(reader, "config", &config) && strlen(config) == LONG_TEXT &&
           em_reader_text(reader, "verdict", &verdict) &&
           strcmp(verdict, "converged: R\xcc\x82 is 1.00") == 0 &&
           em_reader_has(reader, "inv_mass", "inv_mass");
    em_release(&config);
    em_release(&verdict);
    em_reader_close(&reader);
    return good;
}

/* All ranks look at the finished file; it goes when all have. */
static void write_and_check(int64_t n_chain, int64_t n_shard, int64_t planned, int64_t kept)
{
    em_grid *grid = NULL;

    if (em_world_size() % n_shard != 0 || em_world_size() / n_shard > n_chain)
        return;
    check_all(em_grid_create(n_chain, n_shard, &grid) == EM_OK);
    check_all(write_sample(grid, planned, kept) == EM_OK);
    check_all(group_holds("posterior", 5, n_chain, kept));
    check_all(group_holds("sample_stats", 1, n_chain, kept));
    check_all(group_holds("warmup_posterior", 1, n_chain, N_WARMUP));
    check_all(attributes_hold());
    em_grid_destroy(&grid);
    unlink(path);
}

START_TEST(test_all_draws)
{
    write_and_check(8, 1, N_DRAW, N_DRAW);
    write_and_check(5, 1, N_DRAW, N_DRAW);
}
END_TEST

START_TEST(test_shards)
{
    write_and_check(5, 2, N_DRAW, N_DRAW);
    write_and_check(5, 3, N_DRAW, N_DRAW);
}
END_TEST

START_TEST(test_ended_early)
{
    write_and_check(5, 1, 100, 13);
    write_and_check(8, 1, N_DRAW, 16);
}
END_TEST

START_TEST(test_grown)
{
    write_and_check(5, 1, 3, N_DRAW);
    write_and_check(8, 1, 0, 17);
}
END_TEST

/* What a killed run would leave: not complete, and NaN after the last draw written, from which the
 * reader knows where to stop. The second time the first 4 draws are not filled. */
START_TEST(test_unwritten)
{
    em_grid *grid = NULL;
    em_writer *writer = NULL;
    em_reader *reader = NULL;
    double value[4 * 6] = {0};
    int group = -1;
    int64_t complete = -1;

    check_all(em_grid_create(4, 1, &grid) == EM_OK);
    check_all(em_writer_create(grid, path, false, &writer) == EM_OK);
    check_all(em_writer_add_draws(writer, "sample_stats", 1, stats,
                                  (em_draw_space){10, N_CHUNK, 4 * _i}, &group) == EM_OK);
    check_all(em_writer_put_draws(writer, group, 0, 6, value) == EM_OK);
    check_all(em_writer_flush(writer) == EM_OK);
    check_all(em_reader_open(path, "sample_stats", &reader) == EM_OK); /* while it is written */
    check_all(em_reader_n_chain(reader) == 4 && em_reader_n_draw(reader) == 6);
    check_all(em_reader_int(reader, "complete", &complete) && complete == 0);
    em_reader_close(&reader);
    check_all(em_writer_close(&writer, false) == EM_OK);
    em_grid_destroy(&grid);
    unlink(path);
}
END_TEST

/* ---------------------------------------------------------------- failures */

START_TEST(test_existing_file)
{
    em_grid *grid = NULL;
    em_writer *writer = NULL;

    check_all(em_grid_create(4, 1, &grid) == EM_OK);
    check_all(em_writer_create(grid, path, false, &writer) == EM_OK);
    check_all(em_writer_close(&writer, true) == EM_OK);
    check_all(em_writer_create(grid, path, false, &writer) == EM_EUSAGE && !writer);
    check_all(access(path, F_OK) == 0);
    check_all(em_writer_create(grid, path, true, &writer) == EM_OK);
    check_all(em_writer_close(&writer, true) == EM_OK);
    check_all(em_writer_create(grid, "no/such/folder.h5", false, &writer) == EM_EIO);
    check_all(strstr(em_error_text(), "No such file or directory") != NULL);
    em_grid_destroy(&grid);
    unlink(path);
}
END_TEST

static bool is_incomplete(void)
{
    em_reader *reader;
    int64_t complete = -1;
    bool good = em_reader_open(path, "posterior", &reader) == EM_OK &&
                em_reader_int(reader, "complete", &complete) && complete == 0;

    em_reader_close(&reader);
    return good;
}

/* The last rank fails; all leave with its message, and a file left behind is not complete. */
static void fail_at(const char *site, bool leaves_file)
{
    char fault[64], who[32];
    em_grid *grid = NULL;

    snprintf(fault, sizeof fault, "%s:%d", site, em_world_size() - 1);
    snprintf(who, sizeof who, "rank %d:", em_world_size() - 1);
    setenv("EMASS_FAULT", fault, 1);
    check_all(em_grid_create(5, 1, &grid) == EM_OK);
    em_fault_start(em_world_rank());
    check_all(write_sample(grid, N_DRAW, N_DRAW) == EM_EIO);
    check_all(strstr(em_error_text(), "injected") != NULL);
    check_all(em_world_size() == 1 || strncmp(em_error_text(), who, strlen(who)) == 0);
    check_all((access(path, F_OK) == 0) == leaves_file);
    check_all(!leaves_file || is_incomplete());
    unsetenv("EMASS_FAULT");
    em_fault_start(em_world_rank());
    em_grid_destroy(&grid);
    MPI_Barrier(MPI_COMM_WORLD);
    unlink(path);
}

START_TEST(test_faults)
{
    fail_at("hdf5-create", false);
    fail_at("hdf5-write", true);
    fail_at("hdf5-close", true);
}
END_TEST

static Suite *suite(void)
{
    Suite *all = suite_create("writer");
    TCase *tests = tcase_create("writer");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_all_draws);
    tcase_add_test(tests, test_shards);
    tcase_add_test(tests, test_ended_early);
    tcase_add_test(tests, test_grown);
    tcase_add_loop_test(tests, test_unwritten, 0, 2);
    tcase_add_test(tests, test_existing_file);
    tcase_add_test(tests, test_faults);
    suite_add_tcase(all, tests);
    return all;
}

/* FILE CHAINS SHARDS PLANNED KEPT */
static int write_only(char **argument)
{
    em_grid *grid = NULL;
    em_status status = em_grid_create(atoi(argument[1]), atoi(argument[2]), &grid);

    path = argument[0];
    if (!status)
        status = write_sample(grid, atoi(argument[3]), atoi(argument[4]));
    if (status && em_world_rank() == 0)
        fprintf(stderr, "%s\n", em_error_text());
    em_grid_destroy(&grid);
    return em_exit_status(status);
}

int main(int argc, char **argv)
{
    char name[64];
    int id = getpid(), failed;

    if (em_world_start(&argc, &argv))
        return EXIT_FAILURE;
    em_broadcast(&id, sizeof id);
    snprintf(name, sizeof name, "/tmp/emass_test_writer_%d.h5", id);
    path = name;
    failed = argc == 6 ? write_only(argv + 1) : run_suite(suite(), CK_NOFORK);
    em_world_stop();
    return failed;
}
