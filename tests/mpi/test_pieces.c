/* More numbers than go through MPI at once: sums over chains and gathered rows, in pieces. */
#include "base/memory.h"
#include "par/grid.h"
#include "par/world.h"
#include "support/everywhere.h"
#include "support/on_grid.h"

#include <stdbool.h>

enum { N = (1 << 21) + 5 };

/* One chain on each rank, whose number i this is. */
static double number(int64_t chain, int64_t i)
{
    return (double)(i * 7 + chain);
}

static double *own_row(em_grid **grid)
{
    double *x = NULL;

    assert_everywhere(em_grid_create(em_world_size(), 1, grid) == EM_OK, "a grid");
    assert_everywhere(em_allocate_doubles(N, &x) == EM_OK, "memory");
    for (int64_t i = 0; i < N; i++)
        x[i] = number(em_grid_first_chain(*grid), i);
    return x;
}

START_TEST(sums_over_chains)
{
    const double size = em_world_size();
    em_grid *grid = NULL;
    double *x = own_row(&grid), *sum = NULL;
    bool right = true;

    assert_everywhere(em_allocate_doubles(N, &sum) == EM_OK, "memory");
    assert_everywhere(em_grid_sum_chains(grid, N, x, sum) == EM_OK, "summed");
    for (int64_t i = 0; i < N; i++)
        right &= sum[i] == size * number(0, i) + size * (size - 1) / 2;
    assert_everywhere(right, "every number of every piece");
    em_grid_maximum(grid, N, x);
    for (int64_t i = 0; i < N; i++)
        right &= x[i] == number(em_world_size() - 1, i);
    assert_everywhere(right, "and its maximum");
    em_release(&x);
    em_release(&sum);
    em_grid_destroy(&grid);
}
END_TEST

START_TEST(gathered_rows)
{
    em_grid *grid = NULL;
    double *x = own_row(&grid), *all = NULL;
    bool right = true;

    assert_everywhere(em_allocate_doubles(em_world_size() * (int64_t)N, &all) == EM_OK, "memory");
    assert_everywhere(em_grid_gather_chains(grid, N, x, all) == EM_OK, "gathered");
    for (int64_t c = 0; c < em_world_size(); c++)
        for (int64_t i = 0; i < N; i++)
            right &= all[c * N + i] == number(c, i);
    assert_everywhere(right, "every number of every chain");
    em_release(&x);
    em_release(&all);
    em_grid_destroy(&grid);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tests = tcase_create("pieces");

    tcase_add_test(tests, sums_over_chains);
    tcase_add_test(tests, gathered_rows);
    return run_case_on_ranks(tests, argc, argv);
}
