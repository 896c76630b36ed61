#include "run/convergence/chain_statistics.h"

#include "base/memory.h"
#include "diagnostics/diag.h"
#include "par/world.h"

#include <math.h>
#include <stddef.h>

/* Of one chain; all double, for sums over chains and checkpoints. */
typedef struct em_chain_tally {
    double n_diverging;                     /* of all iterations; of draws what follows */
    double n_draw, n_saturated, acceptance; /* sums */
    double still[EM_STILL_STATE], energy[EM_EBFMI_STATE];
} em_chain_tally;

enum { WIDTH = sizeof(em_chain_tally) / sizeof(double) };

struct em_chain_statistics {
    int64_t n_chain;
    bool has_energy, accepts;
    em_chain_tally *chain; /* [n_chain] */
};

static bool has_stat(const em_sampler_ops *sampler, em_stat wanted)
{
    for (const em_stat *stat = sampler ? sampler->stats : NULL; stat && *stat != EM_STAT_COUNT;
         stat++)
        if (*stat == wanted)
            return true;
    return false;
}

em_status em_chain_statistics_create(const em_sampler_ops *sampler, int64_t n_local_chain,
                                     em_chain_statistics **out)
{
    em_chain_statistics *tally = NULL;
    em_status status = em_allocate(1, sizeof *tally, &tally);

    if (!status)
        status = em_allocate(n_local_chain, sizeof *tally->chain, &tally->chain);
    if (!status) {
        tally->n_chain = n_local_chain;
        tally->has_energy = has_stat(sampler, EM_STAT_ENERGY);
        tally->accepts = has_stat(sampler, EM_STAT_ACCEPTANCE_RATE);
    } else
        em_chain_statistics_destroy(&tally);
    *out = tally;
    return status;
}

void em_chain_statistics_destroy(em_chain_statistics **tally)
{
    if (*tally)
        em_release(&(*tally)->chain);
    em_release(tally);
}

static void take_draw(const em_chain_statistics *tally, const em_block *block, int64_t c,
                      em_chain_tally *t)
{
    t->n_draw++;
    t->n_saturated += block->stat[EM_STAT_REACHED_MAX_TREEDEPTH][c];
    t->acceptance += block->acceptance[c];
    em_still_add(t->still, block->log_density[c]);
    if (tally->has_energy)
        em_ebfmi_add(t->energy, block->stat[EM_STAT_ENERGY][c]);
}

void em_chain_statistics_take(em_chain_statistics *tally, const em_block *block, bool stored)
{
    for (int64_t c = 0; c < tally->n_chain; c++) {
        tally->chain[c].n_diverging += block->stat[EM_STAT_DIVERGING][c];
        if (stored)
            take_draw(tally, block, c, &tally->chain[c]);
    }
}

em_status em_chain_statistics_divergences(const em_chain_statistics *tally, em_grid *grid,
                                          int64_t *out)
{
    double *column = NULL, sum = 0;
    em_status status = em_agree(em_allocate(tally->n_chain, sizeof *column, &column));

    for (int64_t c = 0; !status && c < tally->n_chain; c++)
        column[c] = tally->chain[c].n_diverging;
    if (!status)
        status = em_grid_sum_chains(grid, 1, column, &sum);
    *out = (int64_t)llround(sum);
    em_release(&column);
    return status;
}

/* The least E-BFMI, the longest stretch without a move; and which chains are stuck by the mean
 * acceptance of all. Collective. */
static em_status find_stuck(const em_chain_statistics *tally, em_grid *grid,
                            const em_chain_tally *sum, em_findings *out)
{
    const double acceptance = sum->acceptance / sum->n_draw;
    double worst[2] = {-INFINITY, 0}, count = 0, *column = NULL;
    em_status status = em_agree(em_allocate(tally->n_chain, sizeof *column, &column));

    for (int64_t c = 0; !status && c < tally->n_chain; c++) {
        const em_chain_tally *t = &tally->chain[c];
        const double longest = em_still_longest(t->still);
        column[c] =
            tally->accepts && em_still_is_stuck(longest, t->n_draw, sum->n_draw, acceptance);
        worst[0] = fmax(worst[0], -em_ebfmi_of(t->energy));
        worst[1] = fmax(worst[1], column[c] > 0 ? longest : 0);
    }
    if (!status)
        status = em_grid_sum_chains(grid, 1, column, &count);
    em_grid_maximum(grid, 2, worst);
    out->e_bfmi = isfinite(worst[0]) ? 0 - worst[0] : NAN;
    out->n_still = (int64_t)llround(count);
    out->longest_still = (int64_t)worst[1];
    em_release(&column);
    return status;
}

em_status em_chain_statistics_find(const em_chain_statistics *tally, em_grid *grid,
                                   em_findings *out)
{
    em_chain_tally sum;
    em_status status =
        em_grid_sum_chains(grid, WIDTH, (const double *)tally->chain, (double *)&sum);

    *out = (em_findings){.e_bfmi = NAN};
    if (status)
        return status;
    out->n_saturated = (int64_t)llround(sum.n_saturated);
    return find_stuck(tally, grid, &sum, out);
}

em_status em_chain_statistics_visit(em_chain_statistics *tally, const em_visitor *visitor)
{
    return visitor->chains(visitor->context, "tally", WIDTH, (double *)tally->chain);
}
