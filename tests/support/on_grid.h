/* How a Check program runs on several ranks, and one whose tests share the chains of one grid. */
#ifndef TESTS_ON_GRID_H
#define TESTS_ON_GRID_H

#include "par/grid.h"
#include "par/world.h"
#include "support/tap.h"

/* Runs the tests of one case on all ranks; the exit status of main. */
static inline int run_case_on_ranks(TCase *tests, int argc, char **argv)
{
    if (em_world_start(&argc, &argv))
        return EXIT_FAILURE;
    const int failed = run_case(tests, CK_NOFORK);
    em_world_stop();
    return failed;
}

/* Runs the suite, in which *grid has n_chain chains; the exit status of main. */
static inline int run_suite_on_grid(Suite *suite, int argc, char **argv, int64_t n_chain,
                                    em_grid **grid)
{
    if (em_world_start(&argc, &argv) || em_grid_create(n_chain, 1, grid))
        return EXIT_FAILURE;
    const int failed = run_suite(suite, CK_NOFORK);
    em_grid_destroy(grid);
    em_world_stop();
    return failed;
}

static inline int run_case_on_grid(TCase *tests, int argc, char **argv, int64_t n_chain,
                                   em_grid **grid)
{
    Suite *suite = suite_create(program_invocation_short_name);

    suite_add_tcase(suite, tests);
    return run_suite_on_grid(suite, argc, argv, n_chain, grid);
}

#endif
