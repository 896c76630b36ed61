/* What every kernel promises besides its law: no allocation in a step, chains that do not know one
 * another, and a divergence that stays with its chain. */
#ifndef TESTS_SUPPORT_BEHAVIOUR_H
#define TESTS_SUPPORT_BEHAVIOUR_H

#include "support/kernel_bench.h"

void start_anywhere(const em_block *block, int64_t first, kernel_bench *b);
void iterate_bench(kernel_bench *b, int64_t n_iteration);

/* theta[N_CHAIN][dim] after 20 iterations in blocks of `size` chains. */
void run_in_blocks(em_model *model, em_grid *grid, const kernel_run *run, int64_t size,
                   double *theta);

void check_allocations(em_model *model, em_grid *grid, const kernel_run *run);

/* A chain's bits depend on its number alone. */
void check_company(em_model *model, em_grid *grid, const kernel_run *run);

/* Both, and that of a divergence. */
void check_behaviour(em_model *model, em_grid *grid, const kernel_run *run);

#endif
