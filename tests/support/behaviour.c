#include "support/behaviour.h"

void start_anywhere(const em_block *block, int64_t first, kernel_bench *b)
{
    for (int64_t c = 0; c < block->n_chain; c++)
        for (int64_t i = 0; i < block->dim; i++) {
            const em_stream stream = {3, (uint64_t)(first + c), 0, EM_RNG_TEST};
            block->theta[c * block->stride + i] = 2 * em_uniform(&stream, (uint64_t)i) - 1;
        }
    bench_start(b);
}

void iterate_bench(kernel_bench *b, int64_t n_iteration)
{
    for (int64_t t = 0; t < n_iteration; t++) {
        const em_step_context context = bench_context(b, t);
        ck_assert_int_eq(b->run->ops->step(b->sampler, &context, b->block), EM_OK);
    }
}

void run_in_blocks(em_model *model, em_grid *grid, const kernel_run *run, int64_t size,
                   double *theta)
{
    for (int64_t first = 0; first < N_CHAIN; first += size) {
        kernel_bench b;
        bench_open(model, grid, run, &b);
        number_chains(b.block, first);
        b.block->n_chain = size;
        start_anywhere(b.block, first, &b);
        iterate_bench(&b, 20);
        for (int64_t c = 0; c < size; c++)
            memcpy(theta + (first + c) * model->dim, b.block->theta + c * b.block->stride,
                   (size_t)model->dim * sizeof *theta);
        b.block->n_chain = N_CHAIN;
        bench_close(&b);
    }
}

void check_allocations(em_model *model, em_grid *grid, const kernel_run *run)
{
    kernel_bench b;

    bench_open(model, grid, run, &b);
    start_anywhere(b.block, 0, &b);
    iterate_bench(&b, 1);
    const int64_t before = em_allocation_count();
    iterate_bench(&b, 20);
    ck_assert_int_eq(em_allocation_count(), before);
    bench_close(&b);
}

void check_company(em_model *model, em_grid *grid, const kernel_run *run)
{
    double together[N_CHAIN * LAW_MOST_DIM], apart[N_CHAIN * LAW_MOST_DIM];
    const size_t bytes = (size_t)(N_CHAIN * model->dim) * sizeof *apart;

    run_in_blocks(model, grid, run, N_CHAIN, together);
    for (int64_t size = 1; size < N_CHAIN; size *= 2) {
        run_in_blocks(model, grid, run, size, apart);
        ck_assert_mem_eq(together, apart, bytes);
    }
}

/* Chain 3 takes steps far beyond stability: it is marked and stays where it was, the others go on
 * as if it were not there. */
static void check_divergence(em_model *model, em_grid *grid, const kernel_run *run)
{
    double alone[N_CHAIN * LAW_MOST_DIM], start[LAW_MOST_DIM];
    const size_t bytes = (size_t)model->dim * sizeof *start;
    kernel_bench b;

    run_in_blocks(model, grid, run, N_CHAIN, alone);
    bench_open(model, grid, run, &b);
    b.step_size[3] = 1e80;
    start_anywhere(b.block, 0, &b);
    memcpy(start, b.block->theta + 3 * b.block->stride, bytes);
    iterate_bench(&b, 20);
    for (int64_t c = 0; c < N_CHAIN; c++) {
        ck_assert_double_eq(b.block->stat[EM_STAT_DIVERGING][c], c == 3);
        ck_assert_mem_eq(b.block->theta + c * b.block->stride,
                         c == 3 ? start : alone + c * model->dim, bytes);
    }
    bench_close(&b);
}

void check_behaviour(em_model *model, em_grid *grid, const kernel_run *run)
{
    check_allocations(model, grid, run);
    check_company(model, grid, run);
    check_divergence(model, grid, run);
}
