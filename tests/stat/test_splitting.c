/* Splittings into two and three stages: their energy error on a harmonic oscillator, and hmc that
 * moves by them leaves a correlated Gaussian invariant; with momenta of half the variance it does
 * not, and the same bound says so. */
#include "sampler/hamiltonian/splitting.h"
#include "support/kernel_bench.h"
#include "support/on_grid.h"
#include "support/twin_mass.h"

static em_grid *grid;

/* The mean change of the energy of q, p ~ N(0, 1) by n steps of size h of the oscillator of
 * frequency 1. */
static double energy_error(const em_splitting *splitting, double h, int n)
{
    double sum = 0;

    for (int start = 0; start < 2; start++) {
        double q = start, p = 1 - start;
        for (int i = 0; i < n * splitting->n_stage; i++) {
            const int stage = i % splitting->n_stage;
            if (stage == 0)
                p -= splitting->kick[0] * h * q;
            q += splitting->drift[stage] * h * p;
            p -= splitting->kick[stage + 1] * h * q;
        }
        sum += q * q + p * p;
    }
    return 0.5 * (sum - 2);
}

/* Steps are symmetric, so that the reverse move is the same one, and share out the whole step. */
START_TEST(splittings_are_palindromes)
{
    const int n = _i;

    for (double h = 0.01; h < 6; h *= 1.3) {
        const em_splitting s = em_splitting_create(n, h);
        double kicks = 0, drifts = 0;
        ck_assert_int_eq(s.n_stage, n);
        for (int i = 0; i <= n; i++) {
            ck_assert_double_eq(s.kick[i], s.kick[n - i]);
            ck_assert(s.kick[i] > 0);
            kicks += s.kick[i];
        }
        for (int i = 0; i < n; i++) {
            ck_assert_double_eq(s.drift[i], s.drift[n - 1 - i]);
            ck_assert(s.drift[i] > 0);
            drifts += s.drift[i];
        }
        ck_assert_double_eq_tol(kicks, 1, 1e-14);
        ck_assert_double_eq_tol(drifts, 1, 1e-14);
    }
}
END_TEST

/* At frequency 1.1 there is no energy error; at others it is less than a third of that of leapfrog
 * with as many gradients. */
START_TEST(errors_are_small_where_the_mass_is_right)
{
    const int n = _i;

    for (double stage = 0.2; stage < 1.05; stage += 0.1) {
        const double h = n * stage;
        const em_splitting s = em_splitting_create(n, h);
        ck_assert_double_lt(fabs(energy_error(&s, 1.1 * h, 7)), 1e-12);
        for (double frequency = 0.6; frequency < 1.2; frequency += 0.05) {
            double worst = 0, worst_leapfrog = 0;
            for (int k = 1; k < 30; k++)
                worst = fmax(worst, energy_error(&s, frequency * h, k));
            for (int k = 1; k < 30 * n; k++)
                worst_leapfrog =
                    fmax(worst_leapfrog, energy_error(&em_leapfrog, frequency * stage, k));
            ck_assert_double_lt(3 * worst, worst_leapfrog);
        }
    }
}
END_TEST

/* The largest deviation from the exact law, in standard errors. `noise`: times the variance that
 * fresh momenta should have. */
static double worst_z(double step_size, double noise, uint64_t seed, double *acceptance)
{
    em_config *config = NULL;
    kernel_run run = configured("name: hmc", NULL, NULL, seed, &config);
    visited moves;

    run.step_size = step_size;
    run.trajectory =
        (em_trajectory){.kind = EM_TRAJECTORY_TIME, .time = 2, .jitter = 0.2, .multistage = true};
    const double z = twin_worst_z(grid, run, multiple_of(EM_MASS_DENSE, 3, dense_of_3, 1),
                                  multiple_of(EM_MASS_DENSE, 3, dense_of_3, 1 / noise), &moves);
    ck_assert(moves.fewest >= 2 && moves.most <= 12);
    *acceptance = moves.acceptance;
    em_config_destroy(&config);
    return z;
}

/* Steps of two stages; of two and three; of three, once and more often. */
static const double steps[] = {1.25, 0.8, 0.6, 0.25};

START_TEST(hmc_leaves_the_law_invariant)
{
    double acceptance;

    for (uint64_t seed = 1; seed <= 3; seed++) {
        ck_assert_double_lt(worst_z(steps[_i], 1, seed, &acceptance), 4);
        ck_assert(_i > 1 || (acceptance > 0.3 && acceptance < 0.99));
    }
}
END_TEST

START_TEST(twin_with_half_the_noise_fails)
{
    double acceptance;

    ck_assert_double_gt(worst_z(steps[_i], 0.5, 1, &acceptance), 4);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *all = tcase_create("splitting");

    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, splittings_are_palindromes, 2, EM_MOST_STAGES + 1);
    tcase_add_loop_test(all, errors_are_small_where_the_mass_is_right, 2, EM_MOST_STAGES + 1);
    tcase_add_loop_test(all, hmc_leaves_the_law_invariant, 0, 4);
    tcase_add_loop_test(all, twin_with_half_the_noise_fails, 0, 4);
    return run_case_on_grid(all, argc, argv, 16, &grid);
}
