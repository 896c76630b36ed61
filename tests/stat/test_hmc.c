/* HMC leaves a correlated Gaussian invariant, with dense and diagonal masses unlike the target;
 * with momenta of half the variance it does not, and the same bound says so. Trajectories are as
 * long as they say. */
#include "support/kernel_bench.h"
#include "support/on_grid.h"
#include "support/twin_mass.h"

extern const em_sampler_ops em_hmc;

static em_grid *grid;

/* The hmc options without the parser: the head is em_sampler_options, then leapfrog_steps, jitter.
 */
typedef struct hmc_head {
    em_sampler_options common;
    int64_t leapfrog_steps;
    bool jitter;
} hmc_head;

static double worst_of(em_mass *good, em_mass *other, bool jitter, uint64_t seed)
{
    const hmc_head options = {{0}, 4, jitter};
    const kernel_run run = {.ops = &em_hmc, .options = &options, .step_size = 0.6, .seed = seed};

    return twin_worst_z(grid, run, good, other, NULL);
}

/* `noise`: times the variance that fresh momenta should have. */
static double worst(em_structure structure, const double *inverse, double noise, bool jitter,
                    uint64_t seed)
{
    return worst_of(multiple_of(structure, 3, inverse, 1),
                    multiple_of(structure, 3, inverse, 1 / noise), jitter, seed);
}

START_TEST(leaves_the_law_invariant)
{
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_lt(worst(EM_MASS_DENSE, dense_of_3, 1, true, seed), 4);
    ck_assert_double_lt(worst(EM_MASS_DENSE, dense_of_3, 1, false, seed), 4);
    ck_assert_double_lt(worst(EM_MASS_DIAG, diag_of_3, 1, true, seed), 4);
}
END_TEST

START_TEST(leaves_the_law_invariant_by_blocks_and_directions)
{
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_lt(worst_of(low_rank_of_3(5), NULL, true, seed), 4);
    ck_assert_double_lt(worst_of(low_rank_of_3(0.2), NULL, true, seed), 4);
    ck_assert_double_lt(worst_of(blocks_of_3(1), NULL, true, seed), 4);
}
END_TEST

/* Momenta without the direction, or without half of their variance. */
START_TEST(twins_by_blocks_and_directions_fail)
{
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_gt(worst_of(low_rank_of_3(5), low_rank_of_3(1), true, seed), 4);
    ck_assert_double_gt(worst_of(blocks_of_3(1), blocks_of_3(2), true, seed), 4);
}
END_TEST

START_TEST(twin_with_half_the_noise_fails)
{
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_gt(worst(EM_MASS_DENSE, dense_of_3, 0.5, true, seed), 4);
    ck_assert_double_gt(worst(EM_MASS_DIAG, diag_of_3, 0.5, true, seed), 4);
}
END_TEST

/* Trajectories of a time: on N(0, I), n steps of size e turn (theta, p) by 2 n asin(e / 2), so that
 * accepted moves have the mean product cos of that with where they began. */
static double turn_z(double step_size, double time, double claimed_time, uint64_t seed)
{
    enum { N_DRAW = 1000 };
    static const gaussian_law round = {.dim = 2, .precision = {{1, 0}, {0, 1}}};
    em_config *config = NULL;
    em_mass *mass = NULL;
    law_model model = law_model_of(&round);
    kernel_bench b;
    double before[N_CHAIN], sum = 0, squares = 0, n = 0;

    ck_assert_int_eq(em_mass_identity(EM_MASS_DENSE, 2, &mass), EM_OK);
    kernel_run run = configured("name: hmc", mass, NULL, seed, &config);
    run.step_size = step_size;
    run.trajectory = (em_trajectory){.kind = EM_TRAJECTORY_TIME, .time = time};
    bench_open(&model.base, grid, &run, &b);
    for (int64_t c = 0; c < N_CHAIN; c++)
        law_draw(&round, seed, c, b.block->theta + c * b.block->stride);
    bench_start(&b);
    const double n_step = ceil(time / step_size - 1e-9);
    const double turn = 2 * n_step * asin(claimed_time / n_step / 2);
    for (int64_t t = 0; t < N_DRAW; t++) {
        const em_step_context context = bench_context(&b, t);
        for (int64_t c = 0; c < N_CHAIN; c++)
            before[c] = b.block->theta[c * b.block->stride];
        ck_assert_int_eq(em_hmc.step(b.sampler, &context, b.block), EM_OK);
        for (int64_t c = 0; c < N_CHAIN; c++) {
            const double after = b.block->theta[c * b.block->stride];
            const double error = (after - cos(turn) * before[c]) * before[c];
            ck_assert_double_eq(b.block->stat[EM_STAT_N_STEPS][c], n_step);
            ck_assert_double_eq_tol(b.block->stat[EM_STAT_INT_TIME][c], time, 1e-12);
            if (after == before[c])
                continue;
            sum += error;
            squares += error * error;
            n++;
        }
    }
    bench_close(&b);
    em_mass_destroy(&mass);
    em_config_destroy(&config);
    return fabs(sum) / sqrt(squares);
}

/* With small steps nearly all are accepted, and the bias of those that are is below the error. */
START_TEST(trajectories_last_as_long_as_they_say)
{
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_lt(turn_z(0.3, 2, 2, seed), 4);
    ck_assert_double_gt(turn_z(0.3, 2, 2.2, seed), 4);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *law_case = tcase_create("hmc");

    tcase_set_timeout(law_case, 60);
    tcase_add_loop_test(law_case, leaves_the_law_invariant, 0, 4);
    tcase_add_loop_test(law_case, twin_with_half_the_noise_fails, 0, 4);
    tcase_add_loop_test(law_case, leaves_the_law_invariant_by_blocks_and_directions, 0, 2);
    tcase_add_loop_test(law_case, twins_by_blocks_and_directions_fail, 0, 2);
    tcase_add_loop_test(law_case, trajectories_last_as_long_as_they_say, 0, 4);
    return run_case_on_grid(law_case, argc, argv, 8, &grid);
}
