/* The grid on any number of ranks: exact sums, the transpose, agreement. */
#include "base/fault.h"
#include "base/memory.h"
#include "math/rng.h"
#include "par/grid.h"
#include "par/shard_reduction.h"
#include "par/world.h"
#include "support/everywhere.h"
#include "support/on_grid.h"

#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { N_CHAIN = 11, N = 7 };

/* What chain c contributes: sizes from 1e-200 to 1e200, both signs. */
static double term(int64_t c, int64_t i)
{
    const em_stream stream = {5, (uint64_t)c, (uint64_t)i, EM_RNG_TEST};
    const double sign = em_uniform(&stream, 0) < 0.5 ? -1 : 1;

    return sign * pow(10, (double)(i - 3) * 60) * em_uniform(&stream, 1);
}

static em_grid *make_grid(void)
{
    em_grid *grid = NULL;

    assert_everywhere(em_grid_create(N_CHAIN, 1, &grid) == EM_OK, "the grid is made");
    return grid;
}

START_TEST(chains_are_assigned_once)
{
    em_grid *grid = make_grid();
    int64_t assigned = em_grid_n_local_chain(grid);

    assert_everywhere(assigned >= N_CHAIN / em_world_size(), "every rank has its share");
    MPI_Allreduce(MPI_IN_PLACE, &assigned, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    assert_everywhere(assigned == N_CHAIN, "all chains are assigned");
    em_grid_destroy(&grid);
}
END_TEST

/* Parts of different lengths, and of no item, of 12 bytes. */
START_TEST(parts_of_shards_are_put_together)
{
    const int64_t n_shard = em_world_size(), shard = em_world_rank();
    em_grid *grid = NULL;

    assert_everywhere(em_grid_create(N_CHAIN, n_shard, &grid) == EM_OK, "the grid is made");
    for (int64_t n = 0; n <= N; n++) {
        int32_t x[N][3];
        bool same = true;
        memset(x, 0, sizeof x);
        for (int64_t i = em_partition_first(n, n_shard, shard);
             i < em_partition_first(n, n_shard, shard + 1); i++)
            for (int j = 0; j < 3; j++)
                x[i][j] = (int32_t)(10 * i + j + 1);
        em_grid_gather_shards(grid, n, sizeof x[0], x);
        for (int64_t i = 0; i < N; i++)
            for (int j = 0; j < 3; j++)
                same &= x[i][j] == (i < n ? 10 * i + j + 1 : 0);
        assert_everywhere(same, "all have all");
    }
    em_grid_destroy(&grid);
}
END_TEST

/* Shard s sends 1000 a + b bytes of its number to shard b, a being the size: none to some. */
static int64_t bytes_between(int64_t size, int64_t from, int64_t to)
{
    return from == to || (from + to) % 3 == 0 ? 0 : 1000 * size + to;
}

/* Different lengths and none, few bytes and more than MPI sends at once without asking. */
START_TEST(bytes_are_exchanged)
{
    enum { MOST = 300000, SHARDS = 4 };
    const int64_t n_shard = em_world_size(), shard = em_world_rank(), size = _i ? 250 : 1;
    static char out[MOST], in[SHARDS * MOST];
    const void *from[SHARDS] = {out, out, out, out};
    int64_t bytes[SHARDS], taken[SHARDS], at = 0;
    em_grid *grid = NULL;
    bool same = true;

    assert_everywhere(em_grid_create(N_CHAIN, n_shard, &grid) == EM_OK, "the grid is made");
    memset(out, (int)shard + 1, sizeof out);
    memset(in, 0, sizeof in);
    for (int64_t s = 0; s < n_shard; s++)
        bytes[s] = bytes_between(size, shard, s);
    em_grid_exchange_lengths(grid, bytes, taken);
    em_grid_exchange(grid, bytes, from, taken, in);
    for (int64_t s = 0; s < n_shard; s++) {
        same &= taken[s] == bytes_between(size, s, shard);
        for (int64_t i = 0; i < taken[s]; i++)
            same &= in[at++] == s + 1;
    }
    assert_everywhere(same && in[at] == 0, "each has what was sent to it, in order");
    em_grid_destroy(&grid);
}
END_TEST

/* Of numbers that nobody writes meanwhile each shard adds a range, into a panel that all read. */
static bool panel_is_one(em_shard_reduction *reduction, int64_t n)
{
    const int64_t n_shard = em_world_size(), shard = em_world_rank();
    const int64_t first = em_partition_first(n, n_shard, shard);
    double *x = em_shard_reduction_own(reduction), *panel = em_shard_reduction_panel(reduction);
    bool same = true;

    for (int64_t i = 0; i < n; i++)
        x[i] = (double)(i * (1 + shard));
    em_shard_reduction_wait(reduction, NULL);
    em_shard_reduction_add(reduction, first, em_partition_first(n, n_shard, shard + 1) - first,
                           panel + first);
    em_shard_reduction_wait(reduction, NULL);
    for (int64_t i = 0; i < n; i++)
        same &= panel[i] == (double)(i * n_shard * (n_shard + 1) / 2);
    return same;
}

/* Few and many, in memory that the shards share and, where there is none, by messages; the numbers
 * behind those that are asked for stay, and no shard writes while another still adds. */
START_TEST(terms_become_sums)
{
    enum { MANY = 40001, BEHIND = 11 };
    const int64_t n_shard = em_world_size(), shard = em_world_rank(), n = _i % 2 ? MANY : N;
    em_grid *grid = NULL;
    em_shard_reduction *reduction = NULL;
    bool same = true;

    assert_everywhere(em_grid_create(N_CHAIN, n_shard, &grid) == EM_OK, "the grid is made");
    setenv("EMASS_FAULT", _i / 2 ? "data-shared:0:1" : "", 1);
    em_fault_start(em_world_rank());
    assert_everywhere(em_shard_reduction_create(grid, n + BEHIND, &reduction) == EM_OK,
                      "room is made");
    unsetenv("EMASS_FAULT");
    double *x = em_shard_reduction_own(reduction);
    for (int64_t i = 0; i < n + BEHIND; i++)
        same &= x[i] == 0;
    for (int64_t again = 1; again <= 20; again++) {
        for (int64_t i = 0; i < n + BEHIND; i++)
            x[i] = (double)(again * (i + 1) * (1 + shard));
        em_shard_reduction_sum(reduction, n);
        for (int64_t i = 0; i < n; i++)
            same &= x[i] == (double)(again * (i + 1) * n_shard * (n_shard + 1) / 2);
        for (int64_t i = n + 8; i < n + BEHIND; i++)
            same &= x[i] == (double)(again * (i + 1) * (1 + shard));
    }
    assert_everywhere(same, "all have the sums");
    if (em_shard_reduction_panel(reduction))
        assert_everywhere(panel_is_one(reduction, n), "each adds, and writes, a range");
    em_shard_reduction_destroy(&reduction);
    ck_assert_ptr_null(reduction);
    em_grid_destroy(&grid);
}
END_TEST

/* The bits of the sums, on any number of ranks: fixed here from one rank's run. */
START_TEST(sums_are_exact)
{
    em_grid *grid = make_grid();
    const int64_t n_local = em_grid_n_local_chain(grid), first = em_grid_first_chain(grid);
    double x[N_CHAIN][N], alone[N], sum[N];
    long double truth[N] = {0}, largest[N] = {0};
    bool same = true, right = true;

    for (int64_t c = 0; c < n_local; c++)
        for (int64_t i = 0; i < N; i++)
            x[c][i] = term(first + c, i);
    ck_assert_int_eq(em_grid_sum_chains(grid, N, &x[0][0], sum), EM_OK);
    for (int64_t c = 0; c < N_CHAIN; c++)
        for (int64_t i = 0; i < N; i++) {
            truth[i] += term(c, i);
            largest[i] = fmaxl(largest[i], fabsl((long double)term(c, i)));
        }
    for (int64_t i = 0; i < N; i++)
        right &= fabsl(sum[i] - truth[i]) <= ldexpl(largest[i], -50);
    memcpy(alone, sum, sizeof sum);
    MPI_Bcast(alone, N, MPI_DOUBLE, em_world_size() - 1, MPI_COMM_WORLD);
    same = memcmp(alone, sum, sizeof sum) == 0;
    assert_everywhere(right, "the sums are within 2^-50 of the largest term");
    assert_everywhere(same, "all ranks have the same bits");
    em_grid_destroy(&grid);
}
END_TEST

/* The same terms distributed otherwise: all to one group of ranks, as on a single rank. */
START_TEST(sums_do_not_depend_on_the_ranks)
{
    em_grid *grid = make_grid(), *single = NULL;
    const int64_t n_local = em_grid_n_local_chain(grid), first = em_grid_first_chain(grid);
    double x[N_CHAIN][N], sum[N], expected[N];

    /* With as many shards as ranks there is one group, which holds all chains. */
    assert_everywhere(em_grid_create(N_CHAIN, em_world_size(), &single) == EM_OK, "one group");
    for (int64_t c = 0; c < N_CHAIN; c++)
        for (int64_t i = 0; i < N; i++)
            x[c][i] = term(c, i);
    assert_everywhere(em_grid_sum_chains(single, N, &x[0][0], expected) == EM_OK, "summed alone");
    assert_everywhere(em_grid_sum_chains(grid, N, &x[first][0], sum) == EM_OK, "summed");
    assert_everywhere(memcmp(sum, expected, sizeof sum) == 0, "the same bits");
    ck_assert_int_ge(n_local, 1);
    em_grid_destroy(&grid);
    em_grid_destroy(&single);
}
END_TEST

/* What ranks wait for, by MPI's interface for profilers. */
static int n_reduced;

int MPI_Allreduce(const void *from, void *into, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    n_reduced++;
    return PMPI_Allreduce(from, into, count, type, op, comm);
}

START_TEST(a_sum_takes_one_reduction)
{
    enum { MANY = 70000 };
    em_grid *grid = make_grid();
    const int64_t n_local = em_grid_n_local_chain(grid);
    double *x = NULL, *sum = NULL;
    bool right = true;

    assert_everywhere(!em_allocate(n_local * MANY, sizeof *x, &x) &&
                          !em_allocate(MANY, sizeof *sum, &sum),
                      "allocated");
    for (int64_t i = 0; i < n_local * MANY; i++)
        x[i] = (double)(i % MANY);
    assert_everywhere(em_grid_sum_chains(grid, MANY, x, sum) == EM_OK, "summed");
    for (int64_t i = 0; i < MANY; i++)
        right &= sum[i] == (double)(N_CHAIN * i);
    assert_everywhere(right, "sums of more than a piece");
    n_reduced = 0;
    assert_everywhere(em_grid_sum_chains(grid, N, x, sum) == EM_OK, "summed");
    assert_everywhere(n_reduced == (em_world_size() > 1) + 1, "and this very agreement");
    em_release(&x);
    em_release(&sum);
    em_grid_destroy(&grid);
}
END_TEST

START_TEST(sums_mark_what_is_not_finite)
{
    em_grid *grid = make_grid();
    double x[N_CHAIN][2] = {{0}}, sum[2];

    if (em_grid_first_chain(grid) == 0)
        x[0][1] = NAN;
    assert_everywhere(em_grid_sum_chains(grid, 2, &x[0][0], sum) == EM_OK, "summed");
    assert_everywhere(sum[0] == 0 && isnan(sum[1]), "zero is zero, NaN stays");
    em_grid_destroy(&grid);
}
END_TEST

START_TEST(transpose_gives_columns)
{
    enum { ROWS = 3, COLUMNS = 5 };
    em_grid *grid = make_grid();
    const int64_t n_local = em_grid_n_local_chain(grid), first = em_grid_first_chain(grid);
    const int64_t from = em_partition_first(COLUMNS, em_grid_n_group(grid), em_grid_group(grid));
    const int64_t own =
        em_partition_first(COLUMNS, em_grid_n_group(grid), em_grid_group(grid) + 1) - from;
    double local[N_CHAIN][ROWS][COLUMNS], column[COLUMNS][N_CHAIN][ROWS];
    bool right = true;

    for (int64_t c = 0; c < n_local; c++)
        for (int64_t r = 0; r < ROWS; r++)
            for (int64_t k = 0; k < COLUMNS; k++)
                local[c][r][k] = (double)(100 * (first + c) + 10 * r + k);
    assert_everywhere(
        em_grid_transpose(grid, ROWS, COLUMNS, 1, &local[0][0][0], &column[0][0][0]) == EM_OK,
        "transposed");
    for (int64_t k = 0; k < own; k++)
        for (int64_t c = 0; c < N_CHAIN; c++)
            for (int64_t r = 0; r < ROWS; r++)
                right &= column[k][c][r] == (double)(100 * c + 10 * r + from + k);
    assert_everywhere(right, "every number where it belongs");
    em_grid_destroy(&grid);
}
END_TEST

/* Each column's chains in two parts, of which some ranks have one and others none. */
START_TEST(transpose_in_parts)
{
    enum { ROWS = 3, COLUMNS = 2, PARTS = 2 };
    em_grid *grid = make_grid();
    const int64_t n_local = em_grid_n_local_chain(grid), first = em_grid_first_chain(grid);
    const int64_t n_group = em_grid_n_group(grid), n_part = n_group < 4 ? 1 : PARTS;
    const int64_t from = em_partition_first(COLUMNS * n_part, n_group, em_grid_group(grid));
    const int64_t own =
        em_partition_first(COLUMNS * n_part, n_group, em_grid_group(grid) + 1) - from;
    double local[N_CHAIN][ROWS][COLUMNS], column[COLUMNS * N_CHAIN * ROWS];
    const double *next = column;
    bool right = true;

    for (int64_t c = 0; c < n_local; c++)
        for (int64_t r = 0; r < ROWS; r++)
            for (int64_t k = 0; k < COLUMNS; k++)
                local[c][r][k] = (double)(100 * (first + c) + 10 * r + k);
    assert_everywhere(em_grid_transpose(grid, ROWS, COLUMNS, n_part, &local[0][0][0], column) ==
                          EM_OK,
                      "transposed");
    for (int64_t i = from; i < from + own; i++)
        for (int64_t c = em_partition_first(N_CHAIN, n_part, i % n_part);
             c < em_partition_first(N_CHAIN, n_part, i % n_part + 1); c++)
            for (int64_t r = 0; r < ROWS; r++)
                right &= *next++ == (double)(100 * c + 10 * r + i / n_part);
    assert_everywhere(right, "every number where it belongs");
    em_grid_destroy(&grid);
}
END_TEST

START_TEST(gather_gives_all_chains)
{
    em_grid *grid = make_grid();
    double mine[N_CHAIN][2], all[N_CHAIN][2];
    bool right = true;

    for (int64_t c = 0; c < em_grid_n_local_chain(grid); c++)
        for (int64_t i = 0; i < 2; i++)
            mine[c][i] = (double)(em_grid_first_chain(grid) + c) + 0.5 * (double)i;
    assert_everywhere(em_grid_gather_chains(grid, 2, &mine[0][0], &all[0][0]) == EM_OK, "gathered");
    for (int64_t c = 0; c < N_CHAIN; c++)
        right &= all[c][0] == (double)c && all[c][1] == (double)c + 0.5;
    assert_everywhere(right, "in chain order");
    em_grid_destroy(&grid);
}
END_TEST

/* From chains of three rows to chains of one row each, and back; with more groups than chains, too.
 * A row that is somewhere else is seen. */
START_TEST(rows_move_between_grids)
{
    enum { UNIT = 3, WIDTH = 2 };
    const int64_t n_chain = _i;
    em_grid *wide, *narrow;
    double there[UNIT * N_CHAIN][WIDTH], here[UNIT * N_CHAIN][WIDTH] = {{0}};
    bool right = true, shifted = true;

    ck_assert(!em_grid_create_any(n_chain, 1, &wide));
    ck_assert(!em_grid_create_any(UNIT * n_chain, 1, &narrow));
    const int64_t first = em_grid_first_chain(narrow), own = em_grid_n_local_chain(narrow);
    const int64_t first_wide = UNIT * em_grid_first_chain(wide);
    for (int64_t c = 0; c < own; c++)
        for (int64_t i = 0; i < WIDTH; i++)
            here[c][i] = (double)(first + c) + 0.5 * (double)i;
    assert_everywhere(!em_grid_move_items((em_grid_items){narrow, 1}, (em_grid_items){wide, UNIT},
                                          WIDTH, &here[0][0], &there[0][0]),
                      "moved");
    for (int64_t c = 0; c < UNIT * em_grid_n_local_chain(wide); c++) {
        right &= there[c][0] == (double)(first_wide + c) && there[c][1] == there[c][0] + 0.5;
        shifted &= there[c][0] == (double)(first_wide + c + 1);
        there[c][1] = -there[c][0];
    }
    assert_everywhere(right, "in chain order");
    assert_everywhere(!shifted || em_grid_n_local_chain(wide) == 0, "and in no other");
    assert_everywhere(!em_grid_move_items((em_grid_items){wide, UNIT}, (em_grid_items){narrow, 1},
                                          WIDTH, &there[0][0], &here[0][0]),
                      "moved back");
    for (int64_t c = 0; c < own; c++)
        right &= here[c][0] == (double)(first + c) && here[c][1] == -here[c][0];
    assert_everywhere(right, "in chain order again");
    em_grid_destroy(&wide);
    em_grid_destroy(&narrow);
}
END_TEST

START_TEST(ranks_agree_on_the_lowest_failure)
{
    const int last = em_world_size() - 1;
    em_status status = EM_OK;

    if (em_world_rank() == last)
        status = em_fail(EM_EDATA, "a.csv:3: found 'x', expected a number");
    status = em_agree(status);
    assert_everywhere(status == EM_EDATA, "the status is the failing rank's");
    assert_everywhere(strstr(em_error_text(), "a.csv:3: found 'x'") != NULL, "and so is the text");
    assert_everywhere(last == 0 || strncmp(em_error_text(), "rank ", 5) == 0, "it names the rank");
    assert_everywhere(em_agree(EM_NONFINITE) == EM_OK, "a recoverable status is not a failure");
}
END_TEST

START_TEST(more_groups_than_chains_is_an_error)
{
    em_grid *grid = NULL;
    const em_status status = em_grid_create(1, 1, &grid);

    assert_everywhere(status == (em_world_size() > 1 ? EM_ECONFIG : EM_OK), "one chain");
    em_grid_destroy(&grid);
    assert_everywhere(em_grid_create(N_CHAIN, em_world_size() + 1, &grid) == EM_ECONFIG,
                      "shards that do not divide the ranks");
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tests = tcase_create("grid");

    tcase_add_test(tests, chains_are_assigned_once);
    tcase_add_test(tests, parts_of_shards_are_put_together);
    tcase_add_loop_test(tests, bytes_are_exchanged, 0, 2);
    tcase_add_loop_test(tests, terms_become_sums, 0, 4);
    tcase_add_test(tests, sums_are_exact);
    tcase_add_test(tests, sums_do_not_depend_on_the_ranks);
    tcase_add_test(tests, a_sum_takes_one_reduction);
    tcase_add_test(tests, sums_mark_what_is_not_finite);
    tcase_add_test(tests, transpose_gives_columns);
    tcase_add_test(tests, transpose_in_parts);
    tcase_add_test(tests, gather_gives_all_chains);
    tcase_add_loop_test(tests, rows_move_between_grids, 1, N_CHAIN + 1);
    tcase_add_test(tests, ranks_agree_on_the_lowest_failure);
    tcase_add_test(tests, more_groups_than_chains_is_an_error);
    return run_case_on_ranks(tests, argc, argv);
}
