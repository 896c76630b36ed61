/* What is watched: the same verdict on any number of ranks and shards, that of the draws kept. */
#include "base/memory.h"
#include "diagnostics/diag.h"
#include "math/rng.h"
#include "par/world.h"
#include "run/convergence/convergence_monitor.h"
#include "support/everywhere.h"
#include "support/on_grid.h"

#include <math.h>
#include <stdbool.h>

enum { N_CHAIN = 5, N_DRAW = 203, WIDTH = 7 };

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

static double worst_of(em_monitored plan)
{
    double worst = 0;

    for (int64_t i = 0; i < plan.width; i++)
        worst = fmax(worst, r_hat_of(plan.every, plan.n_row, i));
    return worst;
}

/* Those that are watched, and before each one that is not. */
static void keep_draws(em_monitor *monitor, const em_grid *grid, em_monitored plan)
{
    double value[WIDTH];

    for (int64_t c = 0; c < em_grid_n_local_chain(grid); c++)
        for (int64_t row = 1; row <= plan.n_row; row++)
            for (int64_t d = row * plan.every - (plan.every > 1 ? 2 : 1); d < row * plan.every;
                 d++) {
                for (int64_t i = 0; i < WIDTH; i++)
                    value[i] = number(em_grid_first_chain(grid) + c, d, i);
                em_monitor_keep(monitor, c, d, value);
            }
}

static double worst_over_shards(int64_t n_shard, em_monitored plan)
{
    const em_stop_options stop = {.r_hat = NAN, .ess = NAN, .consecutive = 1};
    em_grid *grid = NULL;
    em_monitor *monitor = NULL;
    em_convergence convergence;

    assert_everywhere(em_grid_create(N_CHAIN, n_shard, &grid) == EM_OK, "a grid");
    assert_everywhere(em_monitor_create(grid, &stop, &plan, 0, &monitor) == EM_OK, "a monitor");
    keep_draws(monitor, grid, plan);
    const int64_t n_draw = plan.n_row * plan.every + plan.every / 2;
    assert_everywhere(em_monitor_check(monitor, n_draw, true, true, &convergence) == EM_OK,
                      "checked");
    assert_everywhere(convergence.n_draw == n_draw, "all draws");
    em_monitor_destroy(&monitor);
    em_grid_destroy(&grid);
    return convergence.r_hat;
}

static void check_monitored(em_monitored plan)
{
    const double expected = worst_of(plan);

    for (int64_t n_shard = 1; n_shard <= em_world_size(); n_shard++)
        if (em_world_size() % n_shard == 0)
            assert_everywhere(worst_over_shards(n_shard, plan) == expected,
                              "R-hat of what is watched");
}

START_TEST(all_draws)
{
    check_monitored((em_monitored){WIDTH, 1, N_DRAW});
    assert_everywhere(worst_of((em_monitored){WIDTH, 1, N_DRAW}) > 2,
                      "the last number has not converged");
}
END_TEST

START_TEST(some_draws)
{
    check_monitored((em_monitored){WIDTH, 4, N_DRAW / 4});
}
END_TEST

/* More than 2^31 of a chain: they are counted, not kept. */
START_TEST(very_many_draws)
{
    check_monitored((em_monitored){WIDTH, INT64_C(1) << 30, 20});
}
END_TEST

START_TEST(some_numbers)
{
    check_monitored((em_monitored){WIDTH - 1, 1, N_DRAW});
    check_monitored((em_monitored){1, 3, N_DRAW / 3}); /* fewer than shards */
    assert_everywhere(worst_of((em_monitored){WIDTH - 1, 1, N_DRAW}) < 1.1,
                      "the others have converged");
}
END_TEST

/* A check for progress looks at the parameters alone, one for a stop rule at the others as well
 * once these meet it; all but the last number have converged. */
START_TEST(parameters_first)
{
    const em_monitored plan = {WIDTH, 1, N_DRAW, .n_parameter = WIDTH - 1};
    const double expected = worst_of((em_monitored){WIDTH - 1, 1, N_DRAW});
    em_stop_options stop = {.r_hat = NAN, .ess = NAN, .consecutive = 1};
    em_convergence found;

    for (int rule = 0; rule < 2; rule++) {
        em_grid *grid = NULL;
        em_monitor *monitor = NULL;
        stop.r_hat = rule ? 1.1 : NAN;
        stop.ess = rule ? 1 : NAN;
        assert_everywhere(em_grid_create(N_CHAIN, 1, &grid) == EM_OK, "a grid");
        assert_everywhere(em_monitor_create(grid, &stop, &plan, 0, &monitor) == EM_OK, "made");
        keep_draws(monitor, grid, plan);
        assert_everywhere(em_monitor_check(monitor, N_DRAW, false, true, &found) == EM_OK,
                          "checked");
        assert_everywhere(!found.stop && !found.thorough, "the last number stands in the way");
        assert_everywhere(rule ? found.r_hat > 2 : found.r_hat <= expected, "what was looked at");
        assert_everywhere(em_monitor_times_met(monitor) == 0, "not met");
        em_monitor_destroy(&monitor);
        em_grid_destroy(&grid);
    }
}
END_TEST

/* With draws: auto the other numbers count at the check that may end the run, on any ranks. */
START_TEST(other_numbers_at_the_last_check)
{
    const em_monitored plan = {WIDTH, 1, N_DRAW, .n_parameter = WIDTH - 1};
    const em_stop_options stop = {.r_hat = 1.1, .ess = 1, .consecutive = 2, .until_done = true};
    em_convergence found;

    for (int n_shard = 1; n_shard <= em_world_size(); n_shard++) {
        em_grid *grid = NULL;
        em_monitor *monitor = NULL;
        if (em_world_size() % n_shard != 0)
            continue;
        assert_everywhere(em_grid_create(N_CHAIN, n_shard, &grid) == EM_OK, "a grid");
        assert_everywhere(em_monitor_create(grid, &stop, &plan, 0, &monitor) == EM_OK, "made");
        keep_draws(monitor, grid, plan);
        for (int check = 0; check < 4; check++) {
            assert_everywhere(em_monitor_check(monitor, N_DRAW, false, true, &found) == EM_OK,
                              "checked");
            assert_everywhere(!found.stop && found.met == (check % 2 == 0), "every second");
            assert_everywhere(check % 2 == 0 ? found.r_hat < 1.1 : found.r_hat > 2, "of which");
        }
        em_monitor_destroy(&monitor);
        em_grid_destroy(&grid);
    }
}
END_TEST

START_TEST(thinned_draws)
{
    const em_monitored plan = {WIDTH, 1, N_DRAW}, half = {WIDTH, 2, N_DRAW / 2};
    const em_stop_options stop = {.r_hat = NAN, .ess = NAN, .consecutive = 1};
    em_grid *grid = NULL;
    em_monitor *monitor = NULL;
    em_convergence found;

    assert_everywhere(em_grid_create(N_CHAIN, 1, &grid) == EM_OK, "a grid");
    assert_everywhere(em_monitor_create(grid, &stop, &plan, 0, &monitor) == EM_OK, "made");
    keep_draws(monitor, grid, plan);
    em_monitor_thin(monitor);
    assert_everywhere(em_monitor_check(monitor, N_DRAW / 2, true, true, &found) == EM_OK,
                      "checked");
    assert_everywhere(found.r_hat == worst_of(half), "R-hat of every second draw");
    em_monitor_destroy(&monitor);
    em_grid_destroy(&grid);
}
END_TEST

/* Draws of which several ranks look at one number together. */
typedef enum kind {
    IID,
    SHIFTED,
    TIES,
    FEW_TIES,
    ZEROS,
    INFINITE,
    HALF_INFINITE,
    WITH_NAN,
    CONSTANT,
    N_KIND
} kind;

static double of_kind(kind which, int64_t chain, int64_t draw)
{
    const em_stream stream = {5, (uint64_t)chain, (uint64_t)draw, EM_RNG_TEST};
    const double u = em_uniform(&stream, 0);
    const bool one = chain == 3 && draw == 100;

    switch (which) {
    case SHIFTED:
        return u + (double)chain;
    case TIES:
        return floor(5 * u);
    case FEW_TIES:
        return floor(1000 * u);
    case ZEROS:
        return u < 0.5 ? 0.0 : u < 0.9 ? -0.0 : u;
    case INFINITE:
        return one ? -INFINITY : u;
    case HALF_INFINITE:
        return u < 0.75 ? INFINITY : u;
    case WITH_NAN:
        return one ? NAN : u;
    case CONSTANT:
        return 0.1;
    default:
        return u;
    }
}

/* As the monitor has it: what has no value but is not constant is as bad as can be. */
static em_convergence alone(kind which, int64_t n_row)
{
    em_diagnosis d = {0};
    em_diag *diag = NULL;
    double *draws = NULL;

    assert_everywhere(em_allocate_doubles(N_CHAIN * n_row, &draws) == EM_OK, "room");
    assert_everywhere(em_diag_create(&diag) == EM_OK, "work space");
    for (int64_t i = 0; i < N_CHAIN * n_row; i++)
        draws[i] = of_kind(which, i / n_row, i % n_row);
    assert_everywhere(em_diagnose_convergence(diag, N_CHAIN, n_row, draws, &d) == EM_OK, "done");
    assert_everywhere(d.constant == (which == CONSTANT), "constant, or not");
    em_diag_destroy(&diag);
    em_release(&draws);
    const double ess = fmin(d.ess_bulk, d.ess_tail);
    return which == CONSTANT ? (em_convergence){.r_hat = NAN, .ess = NAN}
                             : (em_convergence){.r_hat = isnan(d.r_hat) ? INFINITY : d.r_hat,
                                                .ess = isnan(ess) ? 0 : ess};
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* `kinds` of numbers, from `first` on. */
static em_convergence together(int64_t n_shard, kind first, int64_t kinds, int64_t n_row)
{
    const em_stop_options stop = {.r_hat = NAN, .ess = NAN, .consecutive = 1};
    const em_monitored plan = {kinds, 1, n_row};
    em_grid *grid = NULL;
    em_monitor *monitor = NULL;
    em_convergence found;

    assert_everywhere(em_grid_create(N_CHAIN, n_shard, &grid) == EM_OK, "a grid");
    assert_everywhere(em_monitor_create(grid, &stop, &plan, 0, &monitor) == EM_OK, "a monitor");
    for (int64_t c = 0; c < em_grid_n_local_chain(grid); c++)
        for (int64_t d = 0; d < n_row; d++) {
            double value[N_KIND];
            for (int64_t k = 0; k < kinds; k++)
                value[k] = of_kind(first + (kind)k, em_grid_first_chain(grid) + c, d);
            em_monitor_keep(monitor, c, d, value);
        }
    assert_everywhere(em_monitor_check(monitor, n_row, true, true, &found) == EM_OK, "checked");
    em_monitor_destroy(&monitor);
    em_grid_destroy(&grid);
    return found;
}

START_TEST(many_draws_of_few_numbers)
{
    enum { MANY = 13200 }; /* for four ranks; an odd number of them for every other kind */

    for (kind k = 0; k < N_KIND; k++) {
        const em_convergence expected = alone(k, MANY + k % 2);
        const em_convergence found = together(1, k, 1, MANY + k % 2);
        assert_everywhere(same(found.r_hat, expected.r_hat), "R-hat, to the bit");
        assert_everywhere(same(found.ess, expected.ess), "ESS, to the bit");
    }
    const em_convergence worst = alone(SHIFTED, MANY);
    for (int64_t n_shard = 1; n_shard <= em_world_size(); n_shard++)
        if (em_world_size() % n_shard == 0) {
            const em_convergence found = together(n_shard, IID, 2, MANY);
            assert_everywhere(found.r_hat == worst.r_hat, "R-hat of the worst");
            assert_everywhere(found.ess == worst.ess, "ESS of the worst");
        }
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tests = tcase_create("monitor");

    tcase_add_test(tests, all_draws);
    tcase_add_test(tests, some_draws);
    tcase_add_test(tests, very_many_draws);
    tcase_add_test(tests, some_numbers);
    tcase_add_test(tests, parameters_first);
    tcase_add_test(tests, other_numbers_at_the_last_check);
    tcase_add_test(tests, thinned_draws);
    tcase_add_test(tests, many_draws_of_few_numbers);
    return run_case_on_ranks(tests, argc, argv);
}
