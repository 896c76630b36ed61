/* The step size of each pool. It is searched for at the start and, in the windows of samplers
 * without an initial phase, after each new mass. Dual averaging updates it in each adaptation
 * update. */
#include "adaptation/adaptation_internal.h"
#include "base/memory.h"
#include "math/order.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

/* The mean over each pool of one number per chain, into out[n_pool]. Outlying chains, and
 * chains with smaller steps than the others, are left out, unless that leaves none. Collective. */
static em_status pool_means(em_adapt *adapt, const double *chain_value, double *out)
{
    enum { SUM, COUNT, SUM_OF_ALL, N };
    const bool *outlying = adapt->outlying + adapt->first_chain;
    double sum[N], *row = NULL;

    if (!adapt->shares) {
        memcpy(out, chain_value, (size_t)adapt->n_pool * sizeof *out);
        return EM_OK;
    }
    em_status status = em_agree(em_allocate(adapt->n_local_chain * N, sizeof *row, &row));
    for (int64_t c = 0; !status && c < adapt->n_local_chain; c++) {
        row[c * N + COUNT] = !outlying[c] && adapt->step_factor[c] == 1;
        row[c * N + SUM] = row[c * N + COUNT] * chain_value[c];
        row[c * N + SUM_OF_ALL] = chain_value[c];
    }
    status = status ? status : em_grid_sum_chains(adapt->grid, N, row, sum);
    if (!status)
        *out = sum[COUNT] > 0 ? sum[SUM] / sum[COUNT] : sum[SUM_OF_ALL] / (double)adapt->n_chain;
    em_release(&row);
    return status;
}

/* The median over each pool, which a single chain far from the others does not shift. Collective.
 */
static em_status pool_medians(em_adapt *adapt, const double *chain_value, double *out)
{
    EM_SCOPED double *all = NULL;

    if (!adapt->shares) {
        memcpy(out, chain_value, (size_t)adapt->n_pool * sizeof *out);
        return EM_OK;
    }
    em_status status = em_agree(em_allocate(adapt->n_chain, sizeof *all, &all));
    status = status ? status : em_grid_gather_chains(adapt->grid, 1, chain_value, all);
    if (!status) {
        em_sort_numbers(adapt->n_chain, all);
        *out = em_sorted_median(adapt->n_chain, all);
    }
    return status;
}

/* The median over each pool of the acceptance of one leapfrog step. Collective; errors agreed. */
static em_status probe(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                       em_block *block, int64_t done, double *pool_acceptance)
{
    const em_step_context context = em_adapt_context(adapt, posterior, done);
    em_status status = em_agree(em_adapt_probe(adapt, sampler, &context, block, adapt->probe));

    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        em_adapt_count_gradients(adapt, c, 1);
    return status ? status : pool_medians(adapt, adapt->probe, pool_acceptance);
}

/*
 * Doubles or halves the step size of each pool until one leapfrog step crosses the target
 * acceptance (Hoffman & Gelman 2014, Algorithm 4), then starts dual averaging there. With share:
 * none every rank continues until the slowest pool of the run is done, so that all ranks make the
 * same collective calls.
 */
em_status em_search_step_size(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior,
                              em_block *block, int64_t done)
{
    double *acceptance = adapt->acceptance; /* free between updates */
    double searching = 1;
    em_status status = EM_OK;

    if (!adapt->adapts_step || !sampler->ops->probe)
        return EM_OK;
    for (int64_t i = 0; i < adapt->n_pool; i++)
        adapt->pools[i].averaging.count = 0; /* its direction while searching: -1, 0 or 1 */
    for (int round = 0; !status && searching > 0 && round < 100; round++) {
        status = probe(adapt, sampler, posterior, block, done, acceptance);
        searching = 0;
        for (int64_t i = 0; !status && i < adapt->n_pool; i++) {
            em_pool *pool = &adapt->pools[i];
            const double direction = acceptance[i] > pool->averaging.target ? 1 : -1;
            if (round == 0)
                pool->averaging.count = direction;
            if (pool->averaging.count == 0)
                continue;
            if (direction != pool->averaging.count) {
                pool->averaging.count = 0;
                continue;
            }
            pool->step_size *= direction > 0 ? 2 : 0.5;
            searching = 1;
        }
        em_publish_to_chains(adapt);
        if (!adapt->shares)
            em_grid_maximum(adapt->grid, 1, &searching);
    }
    for (int64_t i = 0; i < adapt->n_pool; i++)
        em_dual_averaging_start(&adapt->pools[i].averaging, adapt->pools[i].step_size,
                                adapt->restart);
    memset(adapt->acceptance, 0, (size_t)adapt->n_local_chain * sizeof(double));
    adapt->n_since = 0;
    return status;
}

/* Shrinks the step factor of a chain that accepts almost nothing while the others accept, and
 * raises it again, to 1 at most, once the chain accepts. */
static void adapt_step_factors(em_adapt *adapt, double mean)
{
    static const double shorter = 0.3, longer = 2, nothing = 0.1, some = 0.3;

    for (int64_t c = 0; c < adapt->n_local_chain; c++) {
        double *factor = &adapt->step_factor[c];
        if (adapt->probe[c] < nothing && mean > some)
            *factor = fmax(EM_LEAST_STEP_FACTOR, *factor * shorter);
        else if (adapt->probe[c] > adapt->sampler_options->target_accept)
            *factor = fmin(1, *factor * longer);
    }
}

em_status em_update_step_size(em_adapt *adapt)
{
    if (!adapt->adapts_step || adapt->n_since == 0)
        return EM_OK;
    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        adapt->probe[c] = adapt->acceptance[c] / (double)adapt->n_since;
    em_status status = pool_means(adapt, adapt->probe, adapt->acceptance);
    if (adapt->phase == EM_PHASE_INITIAL)
        adapt_step_factors(adapt, adapt->acceptance[0]);
    for (int64_t i = 0; i < adapt->n_pool; i++)
        adapt->pools[i].step_size =
            em_dual_averaging_update(&adapt->pools[i].averaging, adapt->acceptance[i]);
    memset(adapt->acceptance, 0, (size_t)adapt->n_local_chain * sizeof(double));
    adapt->n_since = 0;
    return status;
}

double em_final_step_size(const em_adapt *adapt, const em_pool *pool)
{
    const bool multistage =
        adapt->search && adapt->search->drawn.multistage && adapt->phase != EM_PHASE_INITIAL;
    const double step_size =
        adapt->adapts_step ? em_dual_averaging_final(&pool->averaging) : pool->step_size;

    return multistage ? fmin(step_size, EM_LONGEST_STAGE) : step_size;
}
