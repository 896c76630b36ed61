/*
 * The mode search of a tempered run (adaptation/starts/mode_search.h): its searchers are divided
 * among all ranks, however few ladders there are, and find the same on any number of them.
 */
#include "adaptation/starts/mode_search.h"
#include "base/memory.h"
#include "math/rng.h"
#include "par/message.h"
#include "support/everywhere.h"
#include "support/on_grid.h"

#include <math.h>

enum { D = 3, N_LADDER = 1, N_SEARCHER = 24 };

static const double weight[2] = {0.2, 0.8}, centre[2] = {-8, 12};
static int64_t n_gradient; /* on this rank */

/* Two normal modes of unit variance on the diagonal. */
static em_status add_prior(em_model *base, const em_query *query)
{
    (void)base;
    for (int64_t c = 0; c < query->n_chain; c++, n_gradient++) {
        const double *x = query->theta + c * query->stride;
        double term[2] = {log(weight[0]), log(weight[1])};
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < D; i++)
                term[k] -= pow(x[i] - centre[k], 2) / 2;
        const double top = fmax(term[0], term[1]),
                     sum = log(exp(term[0] - top) + exp(term[1] - top));
        query->log_density[c] += top + sum;
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < D; i++)
                query->gradient[c * query->stride + i] -=
                    exp(term[k] - top - sum) * (x[i] - centre[k]);
    }
    return EM_OK;
}

static em_status anywhere(void *of, int64_t searcher, uint64_t draw, double *theta)
{
    const uint64_t seed = *(const uint64_t *)of;

    em_uniforms(&(em_stream){seed, (uint64_t)searcher, draw, EM_RNG_INIT}, 0, D, theta);
    for (int i = 0; i < D; i++)
        theta[i] = 40 * theta[i] - 20;
    return EM_OK;
}

static const em_model_ops ops = {.name = "modes", .add_prior = add_prior};
static em_model model = {.ops = &ops, .dim = D};

/* Every rank makes its share of the gradients, and the two modes have their weights everywhere. */
START_TEST(searchers_are_divided_among_all_ranks)
{
    const em_search_plan plan = {
        .least = 48, .most = 48, .gradients = 6000, .keeps_one = true, .farthest = 100};
    uint64_t seed = (uint64_t)_i;
    em_grid *grid = NULL;
    em_posterior *posterior = NULL;
    em_mode_search *search = NULL;

    n_gradient = 0;
    assert_everywhere(em_grid_create_any(N_LADDER, 1, &grid) == EM_OK, "grid");
    assert_everywhere(em_posterior_create(&model, grid, 1, &posterior) == EM_OK, "posterior");
    assert_everywhere(em_mode_search_create(grid, D, &plan, &search) == EM_OK, "search");
    assert_everywhere(
        em_mode_search_shared(search, posterior, &plan, N_SEARCHER, anywhere, &seed) == EM_OK,
        "searched");
    assert_everywhere(em_mode_search_n_mode(search) == 2, "both modes on every rank");
    for (int m = 0; m < em_mode_search_n_mode(search); m++) {
        const em_mode_law law = em_mode_search_mode(search, m);
        const int k = law.centre[0] > 0;
        const double log_mass = log(weight[k]) + D * log(2 * acos(-1)) / 2;
        double at[2] = {law.log_mass, law.centre[1]}, most[2] = {at[0], at[1]};
        em_grid_maximum(grid, 2, most);
        assert_everywhere(fabs(at[0] - log_mass) < 1e-3 && fabs(at[1] - centre[k]) < 1e-3,
                          "its mass and centre");
        assert_everywhere(at[0] == most[0] && at[1] == most[1], "the same bits on every rank");
    }
    int64_t all = n_gradient;
    em_world_sum(1, &all);
    assert_everywhere((double)(n_gradient * em_world_size()) < 1.5 * (double)all,
                      "no rank has much more than its share");
    em_mode_search_destroy(&search);
    em_posterior_destroy(&posterior);
    em_grid_destroy(&grid);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tests = tcase_create("searchers");

    tcase_add_loop_test(tests, searchers_are_divided_among_all_ranks, 1, 5);
    return run_case_on_ranks(tests, argc, argv);
}
