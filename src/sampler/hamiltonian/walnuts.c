/*
 * WALNUTS: the No-U-Turn sampler with a step size that is chosen anew along the trajectory
 * (Bou-Rabee, Carpenter, Kleppe & Liu 2025, arXiv:2506.18746). The leaves of its trees
 * (sampler/hamiltonian/trees.h) are apart by a time h, the step size; it moves from leaf to leaf by
 * l = 1, 2, 4, ... leapfrog steps of size h / l:
 *
 *     l(z) = the least l for which max H - min H <= delta over the l + 1 points from z on.
 *
 * The way back has the same points if it chooses the same l. So after l > 1 steps from z to z'
 * every smaller l is tried backward from z'. If one keeps within delta, it would be chosen there
 * and z would not be reached from z': the trajectory ends as at a U-turn, without the current
 * doubling. All leaves of a tree are then reached from each other with probability one, by maps
 * that preserve volume, and the draw among them by exp(-H) leaves the target invariant, as it does
 * in NUTS.
 *
 * In the initial phase it moves as NUTS: in the tails, where energies are some 10^10 and a step
 * changes them by thousands, no l keeps within delta, and a chain would not move.
 *
 * The step size is adapted to the acceptance of leaves reached in one step: if curvature varies, h
 * suits most of the target, and l adapts to the rest.
 */
#include "base/memory.h"
#include "sampler/hamiltonian/trees.h"

#include <math.h>

typedef struct walnuts_options {
    em_sampler_options common;
    int64_t max_treedepth, max_halvings;
    double max_error; /* delta */
} walnuts_options;

static const em_field fields[] = {
    EM_SAMPLER_FIELDS_WITH("adapt", "0.8", "3"),
    EM_INT(walnuts_options, max_treedepth, .minimum = 1, .maximum = EM_TREES_MOST_DEPTH,
           .fallback = "10",
           .doc = "doublings of a tree: it has at most 2^max_treedepth - 1 leaves"),
    EM_REAL(walnuts_options, max_error, .minimum = 1e-6, .maximum = 1000, .fallback = "2",
            .doc = "largest difference of energies between one leaf and the next"),
    EM_INT(walnuts_options, max_halvings, .maximum = 20, .fallback = "10",
           .doc = "between one leaf and the next there are at most 2^max_halvings leapfrog steps"),
    {0}};

/* The steps of one chain to its next leaf. */
typedef struct way {
    int level;          /* it is tried in 2^level steps */
    int back;           /* or, on the way back, in 2^back; -1: it is not on the way back */
    int64_t n;          /* steps of this try */
    double least, most; /* energies of this try */
    double from, to;    /* energies of the leaf it begins at, and of the one it has reached */
    double whole;       /* the energy after one step of the full size */
} way;

typedef struct walnuts_sampler {
    em_sampler base;
    const walnuts_options *options;
    em_trees trees;
    em_points from, to; /* by chain: the leaf where the way begins, and the one it has reached */
    way *way;           /* [n_chain] */
    double max_error;   /* of this iteration */
    double *leap;       /* [n_chain] of each row: its leapfrog step, signed */
} walnuts_sampler;

/* ---------------------------------------------------------------- set up */

static em_status walnuts_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    walnuts_sampler *s = (walnuts_sampler *)base;

    s->options = base->options;
    em_status status =
        em_trees_create(&base->memory, n_chain, dim, s->options->max_treedepth, &s->trees);
    status = status ? status : em_points_create(&base->memory, n_chain, dim, &s->from);
    status = status ? status : em_points_create(&base->memory, n_chain, dim, &s->to);
    return status
               ? status
               : em_own_all(&base->memory, EM_ARRAY(s->way, n_chain), EM_ARRAY(s->leap, n_chain));
}

/* ---------------------------------------------------------------- from leaf to leaf */

/* Prepares a try of 2^level steps from the point of the row, whose energy is `energy`. */
static void walnuts_begin_try(walnuts_sampler *s, int64_t row, int level, double energy)
{
    way *w = &s->way[s->trees.chain[row]];
    const double step = w->back < 0 ? s->trees.step[row] : -s->trees.step[row];

    s->leap[row] = ldexp(step, -level);
    w->n = 0;
    w->least = w->most = energy;
}

/* Takes the point of the row as a leaf, and begins the steps to the next one. */
static void walnuts_begin_way(walnuts_sampler *s, int64_t row)
{
    const int64_t chain = s->trees.chain[row];
    way *w = &s->way[chain];

    em_points_copy(&s->trees.moving, row, &s->from, chain);
    w->from = em_hamiltonian_energy(&s->trees.moving, row);
    w->level = 0;
    w->back = -1;
    walnuts_begin_try(s, row, 0, w->from);
}

typedef enum verdict { GOES_ON, REACHED, NO_WAY_BACK, DIVERGED } verdict;

static verdict walnuts_go_forward(walnuts_sampler *s, int64_t row, bool kept, double energy)
{
    const int64_t chain = s->trees.chain[row];
    way *w = &s->way[chain];

    if (w->level == 0)
        w->whole = energy;
    if (!kept && w->level == s->options->max_halvings)
        return DIVERGED;
    if (!kept) {
        em_points_copy(&s->from, chain, &s->trees.moving, row);
        walnuts_begin_try(s, row, ++w->level, w->from);
        return GOES_ON;
    }
    if (w->n < INT64_C(1) << w->level)
        return GOES_ON;
    w->to = energy;
    if (w->level == 0)
        return REACHED;
    em_points_copy(&s->trees.moving, row, &s->to, chain);
    walnuts_begin_try(s, row, w->back = 0, w->to);
    return GOES_ON;
}

static verdict walnuts_go_back(walnuts_sampler *s, int64_t row, bool kept)
{
    const int64_t chain = s->trees.chain[row];
    way *w = &s->way[chain];

    if (kept)
        return w->n < INT64_C(1) << w->back ? GOES_ON : NO_WAY_BACK;
    em_points_copy(&s->to, chain, &s->trees.moving, row);
    if (++w->back == w->level)
        return REACHED;
    walnuts_begin_try(s, row, w->back, w->to);
    return GOES_ON;
}

/* Processes the result of a leapfrog step of a row. Returns false if its trajectory has ended. */
static bool walnuts_advance(void *to, const em_posterior *posterior, int64_t row)
{
    walnuts_sampler *s = to;
    em_trees *trees = &s->trees;
    way *w = &s->way[trees->chain[row]];
    const double energy = em_hamiltonian_energy(&trees->moving, row);

    trees->tree[trees->chain[row]].n_gradient++;
    w->n++;
    w->least = fmin(w->least, energy);
    w->most = fmax(w->most, energy);
    const bool kept = w->most - w->least <= s->max_error;
    const verdict v =
        w->back < 0 ? walnuts_go_forward(s, row, kept, energy) : walnuts_go_back(s, row, kept);
    if (v == GOES_ON)
        return true;
    if (v != NO_WAY_BACK && em_hamiltonian_failed(posterior, &trees->moving, row)) {
        em_trees_fail(trees, row);
        return false;
    }
    if (v != REACHED) {
        em_trees_break(trees, row, v == DIVERGED, w->whole);
        return false;
    }
    if (!em_trees_grow(trees, row, w->to, w->whole))
        return false;
    walnuts_begin_way(s, row);
    return true;
}

/* ---------------------------------------------------------------- an iteration */

static em_status walnuts_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    walnuts_sampler *s = (walnuts_sampler *)base;
    em_trees *trees = &s->trees;

    s->max_error = context->trajectory.initial_phase ? INFINITY : s->options->max_error;
    em_trees_init(trees, context, block, s->options->max_treedepth);
    for (int64_t row = 0; row < trees->n_moving; row++)
        walnuts_begin_way(s, row);
    return em_trees_run(trees, context->posterior, s->leap, walnuts_advance, s, block);
}

static em_status walnuts_probe(em_sampler *base, const em_step_context *context,
                               const em_block *block, double *acceptance)
{
    return em_hamiltonian_probe(context, block, &((walnuts_sampler *)base)->trees.moving,
                                acceptance);
}

const em_sampler_ops em_walnuts = {
    .name = "walnuts",
    .doc = "NUTS with a step size that adapts along the trajectory, for varying curvature",
    .source = "Bou-Rabee, Carpenter, Kleppe & Liu 2025, arXiv:2506.18746",
    .size = sizeof(walnuts_sampler),
    .options_size = sizeof(walnuts_options),
    .fields = fields,
    .stats = em_tree_stats,
    .set_up = walnuts_set_up,
    .step = walnuts_step,
    .trajectory = em_trees_trajectory,
    .probe = walnuts_probe,
};
