/*
 * Warmup in rounds of 8, 16, 32 ... scans. In the first half of a round the step sizes of the rungs
 * are adapted; in the second half rejections, evidence and draws of the target are collected. At
 * its end the rungs are spaced anew, and the reference of leg B and the masses are learned. The
 * last round changes nothing at its end: the draws use its rungs, reference, masses and step sizes.
 */
#include "adaptation/noncentring/noncentring_search.h"
#include "base/memory.h"
#include "mass/low_rank_sum.h"
#include "mass/moments.h"
#include "par/world.h"
#include "tempering/tempering_internal.h"

#include <math.h>
#include <string.h>

enum { FIRST_ROUND = 8, LONGEST_ROUND = 2048, SHORTEST_LAST = 256, SHORTEST_WIDENING = 64 };
enum { MOST_DENSE = 200, LEAST_RANK = 8 }; /* dimensions; directions */
enum { MOST_MAP_DRAWS = 4000 };            /* for non-centred coordinates */
static const double most_divergences = 0.005;

/* After a round in which more of the moves at the target, and beside it, diverge, step sizes aim at
 * a higher acceptance rate. Where modes differ in width, the mean rate may be as wanted although
 * every trajectory in the narrowest mode diverges. Short rounds do not count. */
enum { SHORTEST_JUDGED = 64, N_HIGHER = 3 };
static const double many_divergences = 0.02, higher_accept[N_HIGHER + 1] = {0, 0.9, 0.95, 0.98};

int64_t em_tempering_most_warmup(int64_t config_warmup)
{
    return config_warmup != INT64_MIN ? config_warmup : 2 * LONGEST_ROUND - FIRST_ROUND;
}

static int64_t half_of(const em_tempering *t)
{
    return (t->round_begin + t->round_end) / 2;
}

/* Begins round number `round` after `done` iterations. If the iterations that would be left after
 * it are too few for a longer round, it takes them too. Local. */
void em_round_begin(em_tempering *t, int64_t done)
{
    const int64_t length = (int64_t)FIRST_ROUND << t->round, left = t->warmup - done;

    t->round_begin = done;
    t->round_end = done + (left - length < 2 * length ? left : length);
    if (t->round + 2 >= EM_MOST_ROUNDS)
        t->round_end = t->warmup;
    em_window_aim(&t->window, half_of(t), t->round_end);
}

/* Chooses low rank if a dense matrix would be too large and there are gradients. The draws of a
 * round are kept for it, or for the search of non-centred coordinates. */
em_status em_round_create_window(em_tempering *t)
{
    const int64_t most = em_low_rank_most(t->dim), draws = 2 * em_window_span(t->dim);
    const bool is_low_rank = t->dim > MOST_DENSE && !t->without_gradient && most >= LEAST_RANK;

    if (is_low_rank)
        t->most_rank = most;
    else if (!t->learns_map)
        return EM_OK;
    return em_window_create(&t->memory, t->n_ladder, em_grid_n_local_chain(t->task.grid), t->dim,
                            LONGEST_ROUND, is_low_rank ? draws : MOST_MAP_DRAWS, &t->window);
}

/* The structure of accumulators and masses in this round: dense if the round has enough draws.
 * Local. */
em_structure em_round_structure(const em_tempering *t)
{
    const int64_t draws = t->n_ladder * (t->round_end - t->round_begin) / 2;

    return t->dim <= MOST_DENSE && draws >= 5 * t->dim + 10 ? EM_MASS_DENSE : EM_MASS_DIAG;
}

/* The number of scans between updates of step sizes. */
static int64_t every(const em_tempering *t)
{
    return em_most((t->round_end - t->round_begin) / 64, 1);
}

int64_t em_tempering_next_update(const em_tempering *t, int64_t done)
{
    const int64_t next = done + every(t) - (done - t->round_begin) % every(t);

    if (t->ended >= 0)
        return INT64_MAX;
    if (done >= half_of(t))
        return t->round_end;
    return em_least(next, half_of(t));
}

/* ---------------------------------------------------------------- step sizes */

static bool diverges(const em_tempering_round *round)
{
    return round->scans >= SHORTEST_JUDGED && round->divergences > many_divergences;
}

static int n_diverging(const em_tempering *t)
{
    int n = 0;

    for (int64_t r = 0; r < t->findings.n_round; r++)
        n += diverges(&t->findings.round[r]);
    return n;
}

double em_target_accept(const em_tempering *t, int i)
{
    const int n = n_diverging(t);

    return fmax(fmax(t->task.kernel[i].options->target_accept,
                     t->map.n_child > 0 ? EM_NONCENTRED_ACCEPT : 0),
                higher_accept[n < N_HIGHER ? n : N_HIGHER]);
}

void em_rung_start_step(em_tempering *t, int64_t k, int i, double step_size)
{
    em_rung_kernel *of = em_rung_kernel_at(t, k, i);

    of->step_size = step_size;
    of->averaging.target = em_target_accept(t, i);
    em_dual_averaging_start(&of->averaging, step_size, 1);
}

/* Updates step sizes by the acceptance rates of all ladders since the last update. Collective. */
static em_status update_steps(em_tempering *t, bool last)
{
    const int64_t n = t->ladder.n_rung * t->n_kernel;
    em_rung_counts sum[2 * EM_MOST_LEG_RUNGS];
    EM_SCOPED double *acceptance = NULL;
    em_status status = em_agree(em_allocate(n, sizeof *acceptance, &acceptance));

    status = status ? status : em_counts_sum(t, sum);
    status = status ? status : em_grid_sum_chains(t->copies, n, t->acceptance, acceptance);
    for (int64_t j = 0; !status && j < n; j++) {
        const int64_t k = j / t->n_kernel;
        em_rung_kernel *of = &t->rung_kernel[j];
        if (!isnan(t->task.kernel[j % t->n_kernel].options->step_size) || t->ladder.beta[k] == 0)
            continue; /* the step size is given, or the kernel is not used */
        if (sum[k].n > 0)
            of->step_size = em_dual_averaging_update(&of->averaging, acceptance[j] / sum[k].n);
        if (last)
            of->step_size = em_dual_averaging_final(&of->averaging);
    }
    em_counts_clear(t);
    return status;
}

/* ---------------------------------------------------------------- the end of a round */

/* Moves the states to the copies of the new ladder. Each rung takes the state of the nearest old
 * rung. */
static em_status reassign_states(em_tempering *t, const em_ladder *ladder, const int64_t *near)
{
    const int64_t n_old = t->ladder.n_rung, n = 2 + 2 * t->stride;
    EM_SCOPED double *own = NULL, *all = NULL;
    em_status status = em_agree(
        em_allocate_all(EM_ARRAY(own, t->n_copy * n), EM_ARRAY(all, t->n_ladder * n_old * n)));

    for (int64_t c = 0; !status && c < t->n_copy; c++) {
        double *row = own + c * n;
        row[0] = (double)t->copy[c].rung;
        row[1] = t->copy[c].log_p;
        memcpy(row + 2, t->block->theta + c * t->stride, (size_t)t->stride * sizeof *row);
        memcpy(row + 2 + t->stride, t->of_model + c * t->stride, (size_t)t->stride * sizeof *row);
    }
    status = status ? status : em_grid_gather_chains(t->copies, n, own, all);
    em_copies_destroy(t);
    t->ladder = *ladder;
    status = status ? status : em_copies_create(t);
    for (int64_t c = 0; !status && c < t->n_copy; c++) {
        const int64_t l = (t->first_copy + c) / ladder->n_rung;
        const double *row = all + l * n_old * n;
        while (row[0] != (double)near[t->copy[c].rung])
            row += n;
        t->copy[c].log_p = row[1];
        memcpy(t->block->theta + c * t->stride, row + 2, (size_t)t->stride * sizeof *row);
        memcpy(t->of_model + c * t->stride, row + 2 + t->stride, (size_t)t->stride * sizeof *row);
    }
    return status;
}

/* The distance of the draws from the mean of a normal reference, in its standard deviations. It is
 * the root mean square in the dimension where that is largest, and 0 for a prior, whose width is
 * fixed. */
static double reach_of(const em_tempering *t, const double *mean, const double *covariance)
{
    double most = 0;

    for (int64_t i = 0; !t->findings.is_prior && i < t->dim; i++)
        most = fmax(most, sqrt(mean[i] * mean[i] +
                               covariance[t->structure == EM_MASS_DENSE ? i * t->dim + i : i]) /
                              t->scale[i]);
    return most;
}

/* The covariance of the draws, shrunk to its diagonal with the weight of 5 draws. Variances of zero
 * are avoided. */
static void covariance_of(const em_tempering *t, const double *sum, double *out)
{
    em_moments_covariance(t->structure, t->dim, sum[0], sum + 1, out);
    for (int64_t i = 0; i < t->dim; i++)
        for (int64_t j = 0; t->structure == EM_MASS_DENSE && j < t->dim; j++)
            out[i * t->dim + j] *= i == j ? 1 : sum[0] / (sum[0] + 5 * (double)t->dim);
}

/* Copies the numbers of the last estimate; those of the identity if there is none. */
static em_status earlier_numbers(const em_tempering *t, const em_mass_form *form, double *out)
{
    EM_SCOPED_BY(em_mass_destroy) em_mass *identity = NULL;
    em_status status = EM_OK;

    if (t->learned) {
        memcpy(out, t->learned, (size_t)form->ops->size(form) * sizeof *out);
    } else {
        status = em_mass_identity_of(form, &identity);
        if (!status)
            identity->ops->write(identity, form, out);
    }
    return status;
}

/* Learns the reference from the moments of the draws. The covariance is an array of the structure.
 */
static em_status learn_reference(em_tempering *t, const em_samples *draws, const double *covariance)
{
    const em_mass_form form = em_tempering_form(t);
    EM_SCOPED double *number = NULL;

    if (t->n_leg == 1)
        return EM_OK;
    if (t->most_rank == 0)
        return em_reference_learn(t, &form, t->centre, covariance);
    em_status status = em_allocate(form.ops->size(&form), sizeof *number, &number);
    if (!status) {
        em_low_rank_covariance(&form, t->learned, covariance, draws, number);
        status = em_reference_learn(t, &form, t->centre, number);
    }
    return status;
}

/* Learns the mass and the reference from the draws at the target. Estimates for which the draws do
 * not suffice are skipped. `draws` is only for low rank: half of them gives the directions, and the
 * other half the variances along them. Local. */
static em_status learn_target(em_tempering *t, const double *sum, const em_samples *draws)
{
    const em_mass_form form = em_tempering_form(t);
    const em_estimator_ops *estimator = em_tempering_estimator(t);
    const int64_t size = form.ops->size(&form), half = draws->n / 2;
    em_samples one = {half, draws->row},
               other = {draws->n - half, half > 0 ? draws->row + half * 2 * t->dim : draws->row};
    EM_SCOPED double *covariance = NULL, *inverse = NULL, *earlier = NULL;
    em_status status = em_allocate_all(EM_ARRAY(covariance, em_mass_size(t->structure, t->dim)),
                                       EM_ARRAY(inverse, size), EM_ARRAY(earlier, size));

    status = status ? status : earlier_numbers(t, &form, earlier);
    status = status ? status : estimator->estimate(t->structure, t->dim, earlier, sum, inverse);
    if (!status && t->most_rank > 0)
        status = estimator->add_directions(&form, earlier, &one, inverse);
    if (!status) {
        em_release(&t->learned);
        t->learned = inverse;
        inverse = NULL;
        for (int64_t i = 0; i < t->dim; i++)
            t->centre[i] += sum[1 + i] / sum[0];
        covariance_of(t, sum, covariance);
        t->findings.reach = reach_of(t, t->centre, covariance);
        status = learn_reference(t, &other, covariance);
    }
    return status < 0 ? status : EM_OK;
}

/* Allocates the accumulators of a round. A rank without ladders gets memory too for the largest
 * distance, because it takes part in its reduction. */
em_status em_round_allocate(em_tempering *t)
{
    const int64_t n = em_grid_n_local_chain(t->task.grid);

    em_release_all(&t->accumulator, &t->farthest);
    t->n_accumulator =
        em_estimator_part_size(em_tempering_estimator(t), &(em_part){0, t->dim, t->structure});
    return em_allocate_all(EM_ARRAY(t->accumulator, n * t->n_accumulator),
                           EM_ARRAY(t->farthest, (n > 0 ? n : 1) * t->dim));
}

/* Widens the reference of leg A to the farthest draw of the target. It never becomes narrower, so
 * it keeps covering every mode. Early draws are left out, because they depend on the starts.
 * Collective. */
static em_status widen_reference(em_tempering *t)
{
    double *most = t->farthest;

    if (t->round_end - t->round_begin < SHORTEST_WIDENING)
        return EM_OK;
    for (int64_t c = 1; c < em_grid_n_local_chain(t->task.grid); c++)
        for (int64_t i = 0; i < t->dim; i++)
            most[i] = fmax(most[i], t->farthest[c * t->dim + i]);
    em_grid_maximum(t->task.grid, t->dim, most);
    return em_agree(em_reference_widen(t, most));
}

static em_status learn(em_tempering *t, const em_samples *draws, double *learned_sum)
{
    em_status status =
        em_grid_sum_chains(t->task.grid, t->n_accumulator, t->accumulator, learned_sum);

    if (!status && t->learns_map)
        status = em_coordinates_exchange(t, draws, learned_sum);
    status = status ? status : widen_reference(t);
    return status ? status : em_agree(learn_target(t, learned_sum, draws));
}

/* Converts the learned inverse mass to another structure. Local. */
static em_status change_structure(em_tempering *t, em_structure to)
{
    const int64_t n = t->dim;
    double *out = NULL;
    em_status status = EM_OK;

    if (to == t->structure)
        return EM_OK;
    if (t->learned)
        status = em_allocate(em_mass_size(to, n), sizeof *out, &out);
    for (int64_t i = 0; !status && t->learned && i < n; i++)
        out[to == EM_MASS_DENSE ? i * n + i : i] = t->learned[to == EM_MASS_DENSE ? i : i * n + i];
    if (!status) {
        em_release(&t->learned);
        t->learned = out;
        t->structure = to;
    }
    return status;
}

/* Gives new rungs the step sizes of the nearest old ones. */
static void inherit_steps(em_tempering *t, const int64_t *near)
{
    double step[2 * EM_MOST_LEG_RUNGS];

    for (int i = 0; i < t->n_kernel; i++) {
        for (int64_t k = 0; k < t->ladder.n_rung; k++)
            step[k] = em_rung_kernel_at(t, near[k], i)->step_size;
        for (int64_t k = 0; k < t->ladder.n_rung; k++)
            em_rung_start_step(t, k, i, step[k]);
    }
}

static em_status improve(em_tempering *t, const double *rejection, const em_samples *draws,
                         int64_t done)
{
    int64_t near[2 * EM_MOST_LEG_RUNGS];
    EM_SCOPED double *sum = NULL;
    em_ladder ladder;
    const int64_t fixed = t->task.options->rungs;
    em_status status = em_agree(em_allocate(t->n_accumulator, sizeof *sum, &sum));

    status = status ? status : learn(t, draws, sum);
    em_ladder_respace(&t->ladder, fixed == INT64_MIN ? 0 : fixed, rejection, &ladder, near);
    status = status ? status : reassign_states(t, &ladder, near);
    t->round++;
    em_round_begin(t, done);
    status = status ? status : change_structure(t, em_round_structure(t));
    status = status ? status : em_round_allocate(t);
    status = status ? status : em_rungs_set_masses(t);
    for (int64_t c = 0; !status && c < t->n_copy; c++)
        status = em_copy_evaluate_and_compose(t, c);
    if (!status)
        inherit_steps(t, near);
    return em_agree(status);
}

/* Whether a longer round may show the form of a funnel: the round has shown none, and its moves at
 * the target, or beside it, diverge. */
static bool may_hide_funnel(const em_tempering *t)
{
    const em_tempering_round *now = &t->findings.round[t->findings.n_round - 1];

    return t->learns_map && t->map.n_child == 0 && now->divergences > most_divergences &&
           now->scans < LONGEST_ROUND / 4;
}

/* Whether the ladders have settled: the barriers are stable, and copies make round trips. */
static bool is_settled(const em_tempering *t)
{
    const em_tempering_findings *found = &t->findings;
    const em_tempering_round *now = &found->round[found->n_round - 1], *before = now - 1;

    if (found->n_round < 2 || now->scans < SHORTEST_LAST || may_hide_funnel(t) ||
        (diverges(now) && n_diverging(t) <= N_HIGHER) || now->restarts < 5 * (double)t->n_ladder)
        return false;
    for (int leg = 0; leg < t->n_leg; leg++)
        if (fabs(now->barrier[leg] - before->barrier[leg]) > 0.3 + 0.15 * before->barrier[leg])
            return false;
    return true;
}

static em_status end_round(em_tempering *t, int64_t done, bool *ended)
{
    em_tempering_findings *found = &t->findings;
    em_tempering_round *round = &found->round[found->n_round++];
    em_samples draws = {.n = 0};
    bool grows = false;
    em_status status = em_counts_gather(t, round, found->rejection, NULL);

    round->scans = (double)(t->round_end - t->round_begin);
    if (!status && t->window.n_slot > 0)
        status = em_window_gather(&t->window, t->task.grid, NULL, &draws);
    if (!status && t->learns_map)
        status = em_coordinates_find(t, &draws, &grows);
    *ended = done == t->warmup || (t->task.warmup == INT64_MIN && is_settled(t) && !grows);
    if (!status && !*ended)
        status = improve(t, found->rejection, &draws, done);
    em_release(&draws.row);
    if (status || !*ended)
        return status;
    t->ended = done;
    em_counts_clear(t);
    return EM_OK;
}

em_status em_tempering_update(em_tempering *t, int64_t done, bool *ended)
{
    *ended = false;
    if (done < t->round_end)
        return update_steps(t, done == half_of(t));
    return end_round(t, done, ended);
}
