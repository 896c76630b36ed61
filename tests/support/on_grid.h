/* How a Check program runs whose tests share the chains of one grid. */
#ifndef TESTS_ON_GRID_H
#define TESTS_ON_GRID_H

#include "par/grid.h"
#include "par/world.h"
#include "support/tap.h"

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

#endif
