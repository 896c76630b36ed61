/* HMC leaves a correlated Gaussian invariant, with dense and diagonal masses unlike the target;
 * with momenta of half the variance it does not, and the same bound says so. */
#include "law.h"
#include "par/world.h"
#include "tap.h"

extern const em_sampler_ops em_hmc;

static em_grid *grid;

static const gaussian_law law = {
    .dim = 3,
    .mean = {1, -2, 0.5},
    .precision = {{2.0, 0.6, -0.3}, {0.6, 1.0, 0.2}, {-0.3, 0.2, 4.0}},
};

static const double dense_inverse[] = {1.0, 0.3, 0.0, 0.3, 0.7, 0.1, 0.0, 0.1, 0.4};
static const double diag_inverse[] = {0.5, 1.5, 0.2};

/* The hmc options without the parser: the head is em_sampler_options, then leapfrog_steps, jitter.
 */
typedef struct hmc_head {
    em_sampler_options common;
    int64_t leapfrog_steps;
    bool jitter;
} hmc_head;

static double worst(em_structure structure, const double *inverse, double momentum_scale,
                    bool jitter, uint64_t seed)
{
    const hmc_head options = {{0}, 4, jitter};
    double covariance[9], z;
    em_mass *mass = NULL;

    ck_assert_int_eq(em_mass_create(structure, 3, inverse, &mass), EM_OK);
    for (int64_t i = 0; i < (structure == EM_MASS_DENSE ? 3 * mass->stride : 3); i++)
        mass->factor[i] *= momentum_scale;
    law_covariance(&law, covariance);
    z = law_worst_z(&law, covariance, grid, &em_hmc, &options, mass, 0.6, seed, 4000);
    em_mass_destroy(&mass);
    return z;
}

START_TEST(leaves_the_law_invariant)
{
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_lt(worst(EM_MASS_DENSE, dense_inverse, 1, true, seed), 4);
    ck_assert_double_lt(worst(EM_MASS_DENSE, dense_inverse, 1, false, seed), 4);
    ck_assert_double_lt(worst(EM_MASS_DIAG, diag_inverse, 1, true, seed), 4);
}
END_TEST

START_TEST(twin_with_half_the_noise_fails)
{
    const uint64_t seed = (uint64_t)_i + 1;

    ck_assert_double_gt(worst(EM_MASS_DENSE, dense_inverse, sqrt(0.5), true, seed), 4);
    ck_assert_double_gt(worst(EM_MASS_DIAG, diag_inverse, sqrt(0.5), true, seed), 4);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("hmc");
    TCase *law_case = tcase_create("law");
    int failed;

    if (em_world_start(&argc, &argv) || em_grid_create(8, 1, &grid))
        return EXIT_FAILURE;
    tcase_set_timeout(law_case, 60);
    tcase_add_loop_test(law_case, leaves_the_law_invariant, 0, 4);
    tcase_add_loop_test(law_case, twin_with_half_the_noise_fails, 0, 4);
    suite_add_tcase(suite, law_case);
    failed = run_suite(suite, CK_NOFORK);
    em_grid_destroy(&grid);
    em_world_stop();
    return failed;
}
