/*
 * rwm and slice leave a correlated Gaussian invariant, whatever the mass (test_non_gaussian has
 * them on other densities), and ask the posterior for log densities alone.
 */
#include "par/world.h"
#include "support/behaviour.h"
#include "support/on_grid.h"
#include "support/twin_mass.h"

extern const em_sampler_ops em_rwm, em_slice;

static em_grid *grid;

/* Of either kernel: steps, or directions. */
typedef struct head {
    em_sampler_options common;
    int64_t number;
} head;

static const em_sampler_ops *kernel_at(int i)
{
    return i % 2 ? &em_slice : &em_rwm;
}

/* ---- a broken twin: where a chain stands the log density is too low by 1 ---- */

static const em_sampler_ops *of_twin;

static em_status twin_step(em_sampler *sampler, const em_step_context *context, em_block *block)
{
    for (int64_t c = 0; c < block->n_chain; c++)
        block->log_density[c] -= 1;
    return of_twin->step(sampler, context, block);
}

/* ---- the law ---- */

/* Takes the mass. */
static double worst(const em_sampler_ops *ops, em_mass *mass, int64_t number, uint64_t seed)
{
    const head options = {{0}, number};
    const kernel_run run = {ops, &options, mass, NULL, 1.3, seed};
    const double z = law_worst_z(&law_of_three, grid, &run, 4000 * (4 - number), NULL);

    em_mass_destroy(&mass);
    return z;
}

START_TEST(leaves_the_law_invariant)
{
    const em_sampler_ops *ops = kernel_at(_i);
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_lt(worst(ops, multiple_of(EM_MASS_DENSE, 3, dense_of_3, 1), 3, seed), 4);
    ck_assert_double_lt(worst(ops, multiple_of(EM_MASS_DIAG, 3, diag_of_3, 1), 3, seed), 4);
    ck_assert_double_lt(worst(ops, multiple_of(EM_MASS_DIAG, 3, diag_of_3, 30), 3, seed), 4);
    ck_assert_double_lt(worst(ops, multiple_of(EM_MASS_DIAG, 3, diag_of_3, 1), 1, seed), 4);
    ck_assert_double_lt(worst(ops, low_rank_of_3(5), 3, seed), 4);
    ck_assert_double_lt(worst(ops, blocks_of_3(1), 2, seed), 4);
}
END_TEST

START_TEST(twin_that_leaves_too_readily_fails)
{
    const uint64_t seed = (uint64_t)_i + 1;
    em_sampler_ops twin = *kernel_at(_i);

    of_twin = kernel_at(_i);
    twin.step = twin_step;
    ck_assert_double_gt(worst(&twin, multiple_of(EM_MASS_DENSE, 3, dense_of_3, 1), 1, seed), 4);
    ck_assert_double_gt(worst(&twin, multiple_of(EM_MASS_DIAG, 3, diag_of_3, 1), 1, seed), 4);
}
END_TEST

/* ---- what every kernel promises ---- */

static em_status add_without_gradient(em_model *base, const em_query *query)
{
    em_query own = *query;
    double gradient[N_CHAIN * 64] = {0};

    ck_assert_int_eq(query->wanted, EM_WANT_LOG_DENSITY);
    own.gradient = gradient;
    return law_add_prior(base, &own);
}

static void run_one(const em_sampler_ops *ops,
                    void (*check)(em_model *, em_grid *, const kernel_run *))
{
    const head options = {{0}, 3};
    em_mass *mass = multiple_of(EM_MASS_DENSE, 3, dense_of_3, 1);
    const kernel_run run = {ops, &options, mass, NULL, 1, 5};
    law_model model = law_model_of(&law_of_three);

    check(&model.base, grid, &run);
    em_mass_destroy(&mass);
}

START_TEST(behaves)
{
    run_one(kernel_at(_i), check_allocations);
    run_one(kernel_at(_i), check_company);
}
END_TEST

static void check_wanted(em_model *model, em_grid *of, const kernel_run *run)
{
    em_model_ops ops = *model->ops;
    kernel_bench b;

    bench_open(model, of, run, &b);
    start_anywhere(b.block, 0, &b);
    ops.add_prior = add_without_gradient;
    model->ops = &ops;
    iterate_bench(&b, 20);
    for (int64_t c = 0; c < N_CHAIN; c++)
        ck_assert_double_eq(b.block->gradient[c * b.block->stride], 0);
    bench_close(&b);
}

START_TEST(asks_for_no_gradient)
{
    run_one(kernel_at(_i), check_wanted);
}
END_TEST

/* A width, or a step, far beyond the target: rwm stays, slice shrinks back to the law. */
static void check_wide(em_model *model, em_grid *of, const kernel_run *run)
{
    kernel_bench b;
    int64_t n_moved = 0;

    bench_open(model, of, run, &b);
    start_anywhere(b.block, 0, &b);
    for (int64_t c = 0; c < N_CHAIN; c++)
        b.step_size[c] = c == 3 ? INFINITY : 1e9;
    const double before = b.block->theta[0], still = b.block->theta[3 * b.block->stride];
    iterate_bench(&b, 20);
    for (int64_t c = 0; c < N_CHAIN; c++) {
        ck_assert(isfinite(b.block->theta[c * b.block->stride]));
        ck_assert(fabs(b.block->theta[c * b.block->stride]) < 10);
    }
    n_moved += b.block->theta[0] != before;
    ck_assert_int_eq(n_moved, run->ops == &em_slice);
    ck_assert_double_eq(b.block->theta[3 * b.block->stride], still);
    bench_close(&b);
}

START_TEST(survives_steps_that_are_far_too_wide)
{
    run_one(kernel_at(_i), check_wide);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *law_case = tcase_create("gradient_free");

    tcase_set_timeout(law_case, 60);
    tcase_add_loop_test(law_case, leaves_the_law_invariant, 0, 8);
    tcase_add_loop_test(law_case, twin_that_leaves_too_readily_fails, 0, 4);
    tcase_add_loop_test(law_case, behaves, 0, 2);
    tcase_add_loop_test(law_case, asks_for_no_gradient, 0, 2);
    tcase_add_loop_test(law_case, survives_steps_that_are_far_too_wide, 0, 2);
    return run_case_on_grid(law_case, argc, argv, 8, &grid);
}
