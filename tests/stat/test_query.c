/*
 * What a kernel asks of a model: every row of a panel goes with the number of its chain, whatever
 * rows the kernel moves about, and every estimate of a chain has random numbers of its own.
 */
#include "emass/model/metric.h"
#include "par/world.h"
#include "support/array_mass.h"
#include "support/kernel_bench.h"
#include "support/on_grid.h"

static em_grid *grid;

enum { FIRST_CHAIN = 20, MOST_EVALUATIONS = 4096, APART = 1000 };

/* Each chain has a law of its own, N(1000 k, 1) for number k, so that a row that is asked about
 * under a wrong number is seen at once. */
typedef struct numbered {
    em_model base;
    bool asked[N_CHAIN][MOST_EVALUATIONS]; /* what minibatches were chosen by */
    int64_t n_wrong, n_twice, n_row;
} numbered;

static em_status numbered_add_prior(em_model *base, const em_query *query)
{
    numbered *self = (numbered *)base;

    for (int64_t c = 0; c < query->n_chain; c++) {
        const double away = query->theta[c * query->stride] - APART * (double)query->chain[c];
        self->n_wrong += !(fabs(away) < APART / 2);
        self->n_row++;
        query->log_density[c] -= away * away / 2;
        query->gradient[c * query->stride] -= away;
    }
    return EM_OK;
}

static em_status numbered_add_likelihood(em_model *base, const em_query *query)
{
    numbered *self = (numbered *)base;

    for (int64_t c = 0; query->rows.index && c < query->n_chain; c++) {
        const em_draw draw = em_query_draw(query, c);
        bool *asked = &self->asked[draw.chain - FIRST_CHAIN][draw.iteration];
        ck_assert(draw.iteration < MOST_EVALUATIONS && draw.seed == 5);
        ck_assert_int_eq(draw.purpose, EM_DRAW_EVALUATION);
        self->n_wrong += draw.chain != query->chain[c];
        self->n_twice += *asked;
        *asked = true;
    }
    return EM_OK;
}

static em_status numbered_add_metric(em_model *base, bool prior, const em_rows *rows,
                                     const double *theta, double *metric, double *derivative)
{
    (void)base, (void)rows, (void)theta, (void)derivative;
    metric[0] += prior;
    return EM_OK;
}

static const em_model_ops numbered_ops = {.name = "numbered",
                                          .add_prior = numbered_add_prior,
                                          .add_likelihood = numbered_add_likelihood,
                                          .metric =
                                              &(const em_model_metric){.add = numbered_add_metric}};

/* Steps of different sizes, so that trajectories end at different times. */
static void place_chains(kernel_bench *b)
{
    number_chains(b->block, FIRST_CHAIN);
    for (int64_t c = 0; c < N_CHAIN; c++) {
        b->block->theta[c * b->block->stride] = APART * (double)(FIRST_CHAIN + c);
        b->step_size[c] = 0.02 * (double)(1 + (c * 5) % N_CHAIN);
    }
}

START_TEST(test_numbers)
{
    static numbered model;
    char text[128];
    em_config *config = NULL;
    em_mass *mass = NULL;
    kernel_bench b;

    memset(&model, 0, sizeof model);
    model.base = (em_model){
        .ops = &numbered_ops, .dim = 1, .rows = {.total = N_ROW, .part = N_ROW, .count = N_ROW}};
    /* Its correction asks twice of one minibatch, and G is largest where the gradient is 0. */
    const bool is_psgld = strcmp(em_samplers[_i]->name, "psgld") == 0;
    snprintf(text, sizeof text, "name: %s, step_size: 0.1%s", em_samplers[_i]->name,
             is_psgld ? ", correction: false, lambda: 1" : "");
    ck_assert_int_eq(mass_of_array(EM_MASS_DIAG, 1, (const double[]){1}, &mass), EM_OK);
    const kernel_run run = configured(text, mass, NULL, 5, &config);
    bench_open(&model.base, grid, &run, &b);
    place_chains(&b);
    bench_start(&b);
    for (int64_t t = 0; t < 40; t++) {
        const em_step_context context = bench_context(&b, t);
        ck_assert_int_eq(run.ops->step(b.sampler, &context, b.block), EM_OK);
    }
    ck_assert_int_gt(model.n_row, 40 * N_CHAIN);
    ck_assert_msg(model.n_wrong == 0, "%s: %lld of %lld", run.ops->name, (long long)model.n_wrong,
                  (long long)model.n_row);
    ck_assert_msg(model.n_twice == 0, "%s: %lld", run.ops->name, (long long)model.n_twice);
    bench_close(&b);
    em_config_destroy(&config);
    em_mass_destroy(&mass);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *numbers = tcase_create("query");
    int n_sampler = 0;

    while (em_samplers[n_sampler] && !em_samplers[n_sampler]->by_model)
        n_sampler++; /* the last ones ask nothing */
    tcase_set_timeout(numbers, 60);
    tcase_add_loop_test(numbers, test_numbers, 0, n_sampler);
    return run_case_on_grid(numbers, argc, argv, N_CHAIN, &grid);
}
