#include "support/search_bench.h"

#include "math/rng.h"
#include "support/on_grid.h"

#include <math.h>

em_grid *search_grid;

static em_status add_prior(em_model *base, const em_query *query)
{
    const target *t = (const target *)base;

    for (int64_t c = 0; c < query->n_chain; c++) {
        double slope[MOST_DIM] = {0};
        query->log_density[c] += t->log_density(t->of, query->theta + c * query->stride, slope);
        for (int64_t i = 0; i < base->dim; i++)
            query->gradient[c * query->stride + i] += slope[i];
    }
    return EM_OK;
}

static const em_model_ops ops = {.name = "target", .add_prior = add_prior};

double funnel(const void *of, const double *x, double *slope)
{
    enum { D = 10 };
    const double v = x[0], precision = exp(-v);
    double square = 0;

    (void)of;
    for (int i = 1; i < D; i++) {
        square += x[i] * x[i];
        slope[i] = -precision * x[i];
    }
    slope[0] = -v / 9 - (D - 1) / 2.0 + precision * square / 2;
    return -v * v / 18 - (D - 1) * v / 2 - precision * square / 2;
}

em_status search_start_law(void *of, int64_t chain, uint64_t draw, double *theta)
{
    const search_bench *b = of;

    em_uniforms(&(em_stream){b->seed, (uint64_t)chain, draw, EM_RNG_INIT}, 0, b->target.base.dim,
                theta);
    for (int64_t i = 0; i < b->target.base.dim; i++)
        theta[i] = b->radius * (2 * theta[i] - 1);
    return EM_OK;
}

void open_search_with(const em_search_plan *plan, density *log_density, const void *of, int dim,
                      uint64_t seed, search_bench *b)
{
    *b = (search_bench){
        .target = {.base = {.ops = &ops, .dim = dim}, .log_density = log_density, .of = of},
        .seed = seed,
        .radius = 2};
    ck_assert_int_eq(em_posterior_create(&b->target.base, search_grid, N_CHAIN, &b->posterior),
                     EM_OK);
    ck_assert_int_eq(em_block_create(0, N_CHAIN, dim, 0, &b->block), EM_OK);
    ck_assert_int_eq(em_mode_search_create(search_grid, dim, plan, &b->search), EM_OK);
    for (int64_t c = 0; c < N_CHAIN; c++)
        search_start_law(b, c, 0, b->block->theta + c * b->block->stride);
    ck_assert_int_eq(em_block_evaluate(b->posterior, b->block), EM_OK);
}

void open_search(density *log_density, const void *of, int dim, uint64_t seed, search_bench *b)
{
    open_search_with(&(em_search_plan){12, 12, 0, 0}, log_density, of, dim, seed, b);
}

void close_search(search_bench *b)
{
    em_mode_search_destroy(&b->search);
    em_block_destroy(&b->block);
    em_posterior_destroy(&b->posterior);
}

void search_start(search_bench *b)
{
    ck_assert_int_eq(
        em_mode_search_start(b->search, b->posterior, search_start_law, b, b->block, b->gradients),
        EM_OK);
}

em_mode_findings search_conclude(search_bench *b)
{
    em_mode_findings found;

    ck_assert_int_eq(em_mode_search_conclude(b->search, &found), EM_OK);
    return found;
}
