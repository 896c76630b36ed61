/* Pools the counts of the copies over all ladders. */
#include "base/memory.h"
#include "par/world.h"
#include "tempering/tempering_internal.h"

#include <math.h>
#include <string.h>

void em_counts_clear(em_tempering *t)
{
    const int64_t n_rung = t->ladder.n_rung;

    memset(t->count, 0, (size_t)(t->n_copy * n_rung) * sizeof *t->count);
    memset(t->acceptance, 0, (size_t)(t->n_copy * n_rung * t->n_kernel) * sizeof(double));
    memset(t->bridges, 0, (size_t)(t->n_copy * t->n_unit * (n_rung - 1)) * sizeof *t->bridges);
    t->unit_length = 1;
    for (int64_t c = 0; c < t->n_copy; c++)
        t->copy[c].restarts = t->copy[c].round_trips = 0;
}

/* Combines the rows of the copies of each ladder: bridges[n_ladder n_unit][n_rung - 1]. The rank
 * that records a ladder receives those of its copies, so that no other one holds them. Collective.
 */
static em_status gather_bridges(em_tempering *t, em_bridge **out)
{
    enum { N = sizeof(em_bridge) / sizeof(double) };
    em_grid *const grid = t->task.grid;
    const int64_t n_rung = t->ladder.n_rung, each = t->n_unit * (n_rung - 1);
    const int64_t n_own = em_grid_n_local_chain(grid);
    EM_SCOPED em_bridge *of_copies = NULL, *of_ladders = NULL;
    em_status status = em_agree(em_allocate_all(EM_ARRAY(of_copies, n_own * n_rung * each),
                                                EM_ARRAY(of_ladders, n_own * each),
                                                EM_ARRAY(*out, t->n_ladder * each)));

    if (!status)
        status = em_grid_move_items((em_grid_items){t->copies, 1}, (em_grid_items){grid, n_rung},
                                    N * each, (const double *)t->bridges, (double *)of_copies);
    for (int64_t c = 0; !status && c < n_own * n_rung; c++)
        for (int64_t i = 0; i < each; i++) {
            em_bridge *to = of_ladders + c / n_rung * each + i;
            em_log_mean_merge(&of_copies[c * each + i].low, &to->low);
            em_log_mean_merge(&of_copies[c * each + i].high, &to->high);
        }
    return status
               ? status
               : em_grid_gather_chains(grid, N * each, (const double *)of_ladders, (double *)*out);
}

em_status em_counts_sum(em_tempering *t, em_rung_counts *sum)
{
    enum { N = sizeof(em_rung_counts) / sizeof(double) };

    return em_grid_sum_chains(t->copies, N * t->ladder.n_rung, (double *)t->count, (double *)sum);
}

/* Sums the restarts and round trips of all copies. Collective. */
static em_status sum_trips(em_tempering *t, double *trips)
{
    EM_SCOPED double *of_copy = NULL;
    em_status status = em_agree(em_allocate(2 * t->n_copy, sizeof *of_copy, &of_copy));

    for (int64_t c = 0; !status && c < t->n_copy; c++) {
        of_copy[2 * c] = t->copy[c].restarts;
        of_copy[2 * c + 1] = t->copy[c].round_trips;
    }
    return status ? status : em_grid_sum_chains(t->copies, 2, of_copy, trips);
}

/* Gathers the round trips of each ladder into of_ladder[n_ladder][3]. Collective. */
static em_status gather_trips(em_tempering *t, double *of_ladder)
{
    const int64_t n = t->n_ladder * t->ladder.n_rung;
    EM_SCOPED double *own = NULL, *all = NULL;
    em_status status = em_agree(em_allocate_all(EM_ARRAY(own, t->n_copy), EM_ARRAY(all, n)));

    for (int64_t c = 0; !status && c < t->n_copy; c++)
        own[c] = t->copy[c].round_trips;
    status = status ? status : em_grid_gather_chains(t->copies, 1, own, all);
    for (int64_t g = 0; !status && g < n; g++)
        of_ladder[3 * (g / t->ladder.n_rung) + 2] += all[g];
    return status;
}

/* The log evidence of a leg, with the normalising constants of prior and likelihood added. If the
 * reference is the prior, the constant of the prior cancels. */
static double normalised(const em_tempering *t, int leg, double value)
{
    const bool is_prior = leg == EM_LEG_A && t->findings.is_prior;

    return value + t->log_constant[1] + (is_prior ? 0 : t->log_constant[0]);
}

/* Evidence of each leg over all ladders and, if of_ladder is not NULL, for each ladder.
 * `influence`: [2][n_ladder n_unit]. */
static void find_evidence(const em_tempering *t, const em_bridge *bridges, double *influence,
                          em_tempering_round *out, double *of_ladder)
{
    const int64_t each = t->n_unit * (t->ladder.n_rung - 1), n = t->n_ladder * t->n_unit;
    double *const of_leg[EM_MOST_LEGS] = {influence, influence + n};
    em_log_evidence found[EM_MOST_LEGS] = {{NAN, NAN}, {NAN, NAN}};

    for (int leg = 0; leg < EM_MOST_LEGS; leg++) {
        if (leg < t->n_leg)
            found[leg] = em_ladder_evidence(&t->ladder, leg, n, t->n_unit, bridges, of_leg[leg]);
        found[leg].value = normalised(t, leg, found[leg].value);
        out->log_evidence[leg] = found[leg].value;
        out->error[leg] = found[leg].error;
        for (int64_t l = 0; of_ladder && l < t->n_ladder; l++)
            of_ladder[3 * l + leg] =
                leg < t->n_leg ? normalised(t, leg,
                                            em_ladder_evidence(&t->ladder, leg, t->n_unit,
                                                               t->n_unit, bridges + l * each, NULL)
                                                .value)
                               : NAN;
    }
    const em_log_evidence both = em_ladder_combine(n, t->n_unit, found, of_leg);
    out->both = both.value;
    out->both_error = both.error;
}

/* The share of moves that diverged, at the target and on the rungs beside it: after the next swap
 * their copies are draws. */
static double share_diverging(const em_tempering *t, const em_rung_counts *sum)
{
    double n = 0, n_diverging = 0;

    for (int64_t k = t->ladder.target - 1; k <= t->ladder.target + 1 && k < t->ladder.n_rung; k++) {
        n += sum[k].n;
        n_diverging += sum[k].n_diverging;
    }
    return n > 0 ? n_diverging / n : 0;
}

em_status em_counts_gather(em_tempering *t, em_tempering_round *out, double *rejection,
                           double *of_ladder)
{
    em_rung_counts sum[2 * EM_MOST_LEG_RUNGS];
    EM_SCOPED em_bridge *bridges = NULL;
    EM_SCOPED double *influence = NULL;
    double trips[2];
    em_status status = em_counts_sum(t, sum);

    status = status ? status : sum_trips(t, trips);
    status = status ? status : gather_bridges(t, &bridges);
    if (!status && of_ladder)
        status = gather_trips(t, of_ladder);
    if (!status)
        status = em_agree(
            em_allocate(EM_MOST_LEGS * t->n_ladder * t->n_unit, sizeof *influence, &influence));
    if (!status) {
        for (int64_t k = 0; k + 1 < t->ladder.n_rung; k++)
            rejection[k] = sum[k].n_swaps > 0 ? sum[k].rejection / sum[k].n_swaps : 0;
        for (int leg = 0; leg < EM_MOST_LEGS; leg++)
            out->barrier[leg] =
                leg < t->n_leg ? em_ladder_barrier(&t->ladder, leg, rejection) : NAN;
        out->rungs = (double)t->ladder.n_rung;
        out->restarts = trips[0];
        out->round_trips = trips[1];
        out->divergences = share_diverging(t, sum);
        find_evidence(t, bridges, influence, out, of_ladder);
    }
    return status;
}
