#include "run/convergence/chain_statistics.h"

#include "base/memory.h"
#include "diagnostics/diag.h"
#include "par/world.h"

#include <math.h>
#include <stddef.h>

/* The sums of one chain. All are doubles, so that they can be summed over chains and stored in
 * checkpoints. */
typedef struct chain_sums {
    double n_diverging; /* divergences of all iterations; the following members are about stored
                           draws */
    double n_draw, n_saturated, acceptance; /* sums */
    double still[EM_STILL_STATE], energy[EM_EBFMI_STATE];
} chain_sums;

enum { WIDTH = sizeof(chain_sums) / sizeof(double) };

struct em_chain_statistics {
    em_owner memory; /* of its arrays */
    int64_t n_chain;
    bool has_energy, accepts;
    chain_sums *chain; /* [n_chain] */
};

em_status em_chain_statistics_create(const em_sampler_ops *sampler, int64_t n_local_chain,
                                     em_chain_statistics **out)
{
    em_status status = em_allocate(1, sizeof **out, out);
    em_chain_statistics *statistics = *out;

    if (!status)
        status = em_own_all(&statistics->memory, EM_ARRAY(statistics->chain, n_local_chain));
    if (!status) {
        statistics->n_chain = n_local_chain;
        statistics->has_energy = em_sampler_has_stat(sampler, EM_STAT_ENERGY);
        statistics->accepts = em_sampler_has_stat(sampler, EM_STAT_ACCEPTANCE_RATE);
    } else
        em_release_owner(out);
    return status;
}

static void take_draw(const em_chain_statistics *statistics, const em_block *block, int64_t c,
                      chain_sums *t)
{
    t->n_draw++;
    t->n_saturated += block->stat[EM_STAT_REACHED_MAX_TREEDEPTH][c];
    t->acceptance += block->acceptance[c];
    em_still_add(t->still, block->log_density[c]);
    if (statistics->has_energy)
        em_ebfmi_add(t->energy, block->stat[EM_STAT_ENERGY][c]);
}

void em_chain_statistics_take(em_chain_statistics *statistics, const em_block *block, bool stored)
{
    for (int64_t c = 0; c < statistics->n_chain; c++) {
        statistics->chain[c].n_diverging += block->stat[EM_STAT_DIVERGING][c];
        if (stored)
            take_draw(statistics, block, c, &statistics->chain[c]);
    }
}

em_status em_chain_statistics_divergences(const em_chain_statistics *statistics, em_grid *grid,
                                          int64_t *out)
{
    EM_SCOPED double *column = NULL;
    double sum = 0;
    em_status status = em_agree(em_allocate(statistics->n_chain, sizeof *column, &column));

    for (int64_t c = 0; !status && c < statistics->n_chain; c++)
        column[c] = statistics->chain[c].n_diverging;
    status = status ? status : em_grid_sum_chains(grid, 1, column, &sum);
    *out = (int64_t)llround(sum);
    return status;
}

/* Computes the smallest E-BFMI, the longest run of iterations without a move, and the chains that
 * are stuck, given the mean acceptance of all. Collective. */
static em_status find_stuck(const em_chain_statistics *statistics, em_grid *grid,
                            const chain_sums *sum, em_findings *out)
{
    const double acceptance = sum->acceptance / sum->n_draw;
    EM_SCOPED double *column = NULL;
    double worst[2] = {-INFINITY, 0}, count = 0;
    em_status status = em_agree(em_allocate(statistics->n_chain, sizeof *column, &column));

    for (int64_t c = 0; !status && c < statistics->n_chain; c++) {
        const chain_sums *t = &statistics->chain[c];
        const double longest = em_still_longest(t->still);
        column[c] =
            statistics->accepts && em_still_is_stuck(longest, t->n_draw, sum->n_draw, acceptance);
        worst[0] = fmax(worst[0], -em_ebfmi_of(t->energy));
        worst[1] = fmax(worst[1], column[c] > 0 ? longest : 0);
    }
    status = status ? status : em_grid_sum_chains(grid, 1, column, &count);
    em_grid_maximum(grid, 2, worst);
    out->e_bfmi = isfinite(worst[0]) ? 0 - worst[0] : NAN;
    out->n_still = (int64_t)llround(count);
    out->longest_still = (int64_t)worst[1];
    return status;
}

em_status em_chain_statistics_find(const em_chain_statistics *statistics, em_grid *grid,
                                   em_findings *out)
{
    chain_sums sum;
    em_status status =
        em_grid_sum_chains(grid, WIDTH, (const double *)statistics->chain, (double *)&sum);

    *out = (em_findings){.e_bfmi = NAN};
    if (status)
        return status;
    out->n_saturated = (int64_t)llround(sum.n_saturated);
    return find_stuck(statistics, grid, &sum, out);
}

em_status em_chain_statistics_visit(em_chain_statistics *statistics, const em_visitor *visitor)
{
    return visitor->chains(visitor->context, "chain_statistics", WIDTH,
                           (double *)statistics->chain);
}
