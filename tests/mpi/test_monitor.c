/* What is watched: the same verdict on any number of ranks and shards, that of the draws kept. */
#include "diag/diag.h"
#include "math/rng.h"
#include "par/world.h"
#include "run/monitor.h"
#include "tap.h"

#include <math.h>
#include <mpi.h>
#include <stdbool.h>

enum { N_CHAIN = 5, N_DRAW = 203, WIDTH = 7 };

/* All ranks say the same, or all fail: a rank that fails alone would leave the others waiting. */
static void assert_everywhere(bool holds, const char *what)
{
    int all = holds;

    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    ck_assert_msg(all, "%s", what);
}

/* Number i of a draw; the last number has another mean in each chain. */
static double number(int64_t chain, int64_t draw, int64_t i)
{
    const em_stream stream = {3, (uint64_t)chain, (uint64_t)draw, EM_RNG_TEST};

    return em_uniform(&stream, (uint64_t)i) + (i == WIDTH - 1 ? (double)chain : 0);
}

/* R-hat of number i of every `every`-th draw of all chains, n_row of each. */
static double r_hat_of(int64_t every, int64_t n_row, int64_t i)
{
    double draws[N_CHAIN * N_DRAW];
    em_diagnosis diagnosis = {.r_hat = NAN};
    em_diag *diag = NULL;

    for (int64_t c = 0; c < N_CHAIN; c++)
        for (int64_t r = 0; r < n_row; r++)
            draws[c * n_row + r] = number(c, (r + 1) * every - 1, i);
    assert_everywhere(em_diag_create(&diag) == EM_OK, "work space");
    assert_everywhere(em_diagnose(diag, N_CHAIN, n_row, draws, &diagnosis) == EM_OK, "diagnosed");
    em_diag_destroy(&diag);
    return diagnosis.r_hat;
}

static double worst_of(em_watch watch)
{
    double worst = 0;

    for (int64_t i = 0; i < watch.width; i++)
        worst = fmax(worst, r_hat_of(watch.every, watch.n_row, i));
    return worst;
}

/* Those that are watched, and before each one that is not. */
static void keep_draws(em_monitor *monitor, const em_grid *grid, em_watch watch)
{
    double value[WIDTH];

    for (int64_t c = 0; c < em_grid_n_local_chain(grid); c++)
        for (int64_t row = 1; row <= watch.n_row; row++)
            for (int64_t d = row * watch.every - (watch.every > 1 ? 2 : 1); d < row * watch.every;
                 d++) {
                for (int64_t i = 0; i < WIDTH; i++)
                    value[i] = number(em_grid_first_chain(grid) + c, d, i);
                em_monitor_keep(monitor, c, d, value);
            }
}

static double monitored(int64_t n_shard, em_watch watch)
{
    const em_stop_options stop = {.r_hat = NAN, .ess = NAN, .consecutive = 1};
    em_grid *grid = NULL;
    em_monitor *monitor = NULL;
    em_convergence convergence;

    assert_everywhere(em_grid_create(N_CHAIN, n_shard, &grid) == EM_OK, "a grid");
    assert_everywhere(em_monitor_create(grid, &stop, &watch, 0, &monitor) == EM_OK, "a monitor");
    keep_draws(monitor, grid, watch);
    const int64_t n_draw = watch.n_row * watch.every + watch.every / 2;
    assert_everywhere(em_monitor_check(monitor, n_draw, true, &convergence) == EM_OK, "checked");
    assert_everywhere(convergence.n_draw == n_draw, "all draws");
    em_monitor_destroy(&monitor);
    em_grid_destroy(&grid);
    return convergence.r_hat;
}

static void check_watch(em_watch watch)
{
    const double expected = worst_of(watch);

    for (int64_t n_shard = 1; n_shard <= em_world_size(); n_shard++)
        if (em_world_size() % n_shard == 0)
            assert_everywhere(monitored(n_shard, watch) == expected, "R-hat of what is watched");
}

START_TEST(all_draws)
{
    check_watch((em_watch){WIDTH, 1, N_DRAW});
    assert_everywhere(worst_of((em_watch){WIDTH, 1, N_DRAW}) > 2,
                      "the last number has not converged");
}
END_TEST

START_TEST(some_draws)
{
    check_watch((em_watch){WIDTH, 4, N_DRAW / 4});
}
END_TEST

/* More than 2^31 of a chain: they are counted, not kept. */
START_TEST(very_many_draws)
{
    check_watch((em_watch){WIDTH, INT64_C(1) << 30, 20});
}
END_TEST

START_TEST(some_numbers)
{
    check_watch((em_watch){WIDTH - 1, 1, N_DRAW});
    check_watch((em_watch){1, 3, N_DRAW / 3}); /* fewer than shards */
    assert_everywhere(worst_of((em_watch){WIDTH - 1, 1, N_DRAW}) < 1.1,
                      "the others have converged");
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("monitor");
    TCase *tests = tcase_create("monitor");
    int failed;

    if (em_world_start(&argc, &argv))
        return EXIT_FAILURE;
    tcase_add_test(tests, all_draws);
    tcase_add_test(tests, some_draws);
    tcase_add_test(tests, very_many_draws);
    tcase_add_test(tests, some_numbers);
    suite_add_tcase(suite, tests);
    failed = run_suite(suite, CK_NOFORK);
    em_world_stop();
    return failed;
}
