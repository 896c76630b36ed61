/*
 * Simulation-based calibration of every model (Talts et al. 2018): theta from the prior, data from
 * the likelihood at theta, draws given the data; then the rank of each parameter among its draws,
 * and that of the log density (Modrak et al. 2023), is uniform.
 *
 * The draws are those of Besag and Clifford (1989): theta has the law of a posterior draw, so that
 * a reversible kernel takes it STEPS iterations to a hub, from which independent chains of STEPS
 * iterations go: their ends and theta are exchangeable, and ranks exactly uniform, whether chains
 * have converged or not. HMC with a fixed number of steps is such a kernel; for a network too,
 * whose own stochastic samplers have a bias that ranks would show. The topic models draw what they
 * have no density of: stat/test_pfa and stat/test_dpfa compare theirs with joint draws instead.
 *
 * The twin's theta is one that the data were not drawn from. EMASS_SBC is the number of
 * replications, 100 by default; tests/slow/sbc.sh has 1000, and Stan programs (EMASS_STANLI).
 */
#include "par/grid.h"
#include "par/world.h"
#include "sampler/kernel/sampler.h"
#include "support/sbc_models.h"
#include "support/tap.h"

#include <check.h>
#include <math.h>

extern const em_sampler_ops em_hmc;

enum { N_CHAIN = 15, STEPS = 6, MOST_RANKED = SBC_MOST_DIM + 1 };

static em_grid *grid;
static em_variate *numbers;

/* ---------------------------------------------------------------- ranks */

/* STEPS iterations of all chains of a block from one position. */
static void run_chains(em_posterior *posterior, double step_size, uint64_t seed, int64_t first,
                       const double *from, em_block *block)
{
    char *options = calloc(1, em_hmc.options_size);
    const em_mass *masses[N_CHAIN];
    double steps[N_CHAIN];
    em_mass *mass = NULL;
    em_sampler *sampler = NULL;

    ck_assert_int_eq(em_mass_identity(EM_MASS_DIAG, block->dim, &mass), EM_OK);
    for (const em_field *f = em_hmc.fields; f->name; f++)
        ck_assert_int_eq(set_option(f,
                                    strcmp(f->name, "leapfrog_steps") == 0 ? "8"
                                    : strcmp(f->name, "jitter") == 0       ? "false"
                                                                           : f->fallback,
                                    options),
                         EM_OK);
    ck_assert_int_eq(em_sampler_create(&em_hmc, options, block->n_chain, block->dim, &sampler),
                     EM_OK);
    for (int64_t c = 0; c < block->n_chain; c++) {
        masses[c] = mass;
        steps[c] = step_size;
        memcpy(block->theta + c * block->stride, from, (size_t)block->dim * sizeof *from);
    }
    ck_assert_int_eq(em_block_evaluate(posterior, block), EM_OK);
    for (int64_t t = 0; t < STEPS; t++)
        ck_assert_int_eq(em_hmc.step(sampler,
                                     &(em_step_context){.posterior = posterior,
                                                        .mass = masses,
                                                        .step_size = steps,
                                                        .seed = seed,
                                                        .iteration = first + t},
                                     block),
                         EM_OK);
    em_sampler_destroy(&sampler);
    em_mass_destroy(&mass);
    em_field_release(em_hmc.fields, options);
    free(options);
}

/* The rank of `value` among the draws; equal ones (rejected moves) are put in order at random. */
static int rank_of(double value, const double *draw)
{
    int below = 0, equal = 0;

    for (int c = 0; c < N_CHAIN; c++) {
        below += draw[c] < value;
        equal += draw[c] == value;
    }
    return below + (int)(em_variate_uniform(numbers) * (equal + 1));
}

/* What is ranked of a position: the parameters, and the log density. */
static void rank_draws(em_posterior *posterior, const em_block *ends, em_block *one,
                       const double *theta, int count[][N_CHAIN + 1])
{
    double draw[N_CHAIN];

    for (int64_t j = 0; j < ends->dim; j++) {
        for (int c = 0; c < N_CHAIN; c++)
            draw[c] = ends->theta[c * ends->stride + j];
        count[j][rank_of(theta[j], draw)]++;
    }
    memcpy(one->theta, theta, (size_t)one->dim * sizeof *theta);
    ck_assert_int_eq(em_block_evaluate(posterior, one), EM_OK);
    count[ends->dim][rank_of(one->log_density[0], ends->log_density)]++;
}

static void replicate(const calibrated *m, int64_t replication, bool wrong,
                      int count[][N_CHAIN + 1], int64_t *n_ranked)
{
    const em_draw draw = {.seed = 11, .chain = m - sbc_models, .iteration = replication};
    em_variate own = {&draw, 0};
    double theta[SBC_MOST_DIM], hub[SBC_MOST_DIM];
    em_posterior *posterior = NULL;
    em_block *one = NULL, *ends = NULL;

    numbers = &own;
    setup s = sbc_draw(m, &own, theta);
    const int64_t dim = s.model->dim;
    for (int64_t j = 0; wrong && j < dim; j++)
        theta[j] += m->shift;
    ck_assert_int_eq(em_posterior_create(s.model, grid, N_CHAIN, &posterior), EM_OK);
    ck_assert_int_eq(em_block_create(N_CHAIN, 1, dim, 0, &one), EM_OK);
    ck_assert_int_eq(em_block_create(0, N_CHAIN, dim, 0, &ends), EM_OK);
    run_chains(posterior, m->step_size, (uint64_t)replication, 0, theta, one);
    memcpy(hub, one->theta, (size_t)dim * sizeof *hub);
    run_chains(posterior, m->step_size, (uint64_t)replication, 0, hub, ends);
    rank_draws(posterior, ends, one, theta, count);
    *n_ranked = dim + 1;
    em_block_destroy(&one);
    em_block_destroy(&ends);
    em_posterior_destroy(&posterior);
    teardown(&s);
}

static int64_t replications(void)
{
    return getenv("EMASS_SBC") ? atoll(getenv("EMASS_SBC")) : 100;
}

/* The largest chi-square of the ranks of a parameter: N_CHAIN degrees of freedom. */
static double worst_chi_square(const calibrated *m, bool wrong)
{
    const int64_t n = replications();
    const double expected = (double)n / (N_CHAIN + 1);
    int count[MOST_RANKED][N_CHAIN + 1] = {{0}};
    int64_t n_ranked = 0;
    double worst = 0;

    for (int64_t r = 0; r < n; r++)
        replicate(m, r, wrong, count, &n_ranked);
    for (int64_t j = 0; j < n_ranked; j++) {
        double sum = 0;
        for (int k = 0; k <= N_CHAIN; k++)
            sum += pow(count[j][k] - expected, 2) / expected;
        worst = fmax(worst, sum);
    }
    return worst;
}

/* Of 15 degrees of freedom 54 is exceeded with a probability of 3e-6; 97 numbers are ranked. */
START_TEST(ranks_are_uniform)
{
    const double found = worst_chi_square(&sbc_models[_i], false);

    ck_assert_msg(found < 54, "%s: chi-square %g", sbc_models[_i].name, found);
}
END_TEST

START_TEST(twin_with_another_theta_fails)
{
    const double found = worst_chi_square(&sbc_models[_i], true);

    ck_assert_msg(found > 54, "%s: chi-square %g", sbc_models[_i].name, found);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *all = tcase_create("sbc");
    int failed;

    if (em_world_start(&argc, &argv) || em_grid_create(N_CHAIN, 1, &grid) || !sbc_open())
        return EXIT_FAILURE;
    const int n_model = getenv("EMASS_STANLI") ? N_SBC_MODEL : N_SBC_MODEL - N_SBC_STAN;
    tcase_set_timeout(all, 60 + (double)replications());
    tcase_add_loop_test(all, ranks_are_uniform, 0, n_model);
    tcase_add_loop_test(all, twin_with_another_theta_fails, 0, n_model);
    failed = run_case(all, CK_NOFORK);
    sbc_close();
    em_grid_destroy(&grid);
    em_world_stop();
    return failed;
}
