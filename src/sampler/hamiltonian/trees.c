/*
 * A doubling is a binary tree whose leaves are steps of the kernel. There is no recursion: leaf n
 * (from 0) completes a subtree of level k for each of the k lowest bits of n that are set, so that
 * a stack of one subtree per level holds the subtrees that wait for their other half. Within a
 * doubling the draw is sampled from a reservoir: a leaf replaces it with probability weight / (sum
 * so far), which is multinomial sampling in any order.
 */
#include "sampler/hamiltonian/trees.h"

#include "base/memory.h"

#include <math.h>

enum { MOST_DEPTH = EM_TREES_MOST_DEPTH };

/* ---------------------------------------------------------------- set up */

static double *take_row(double **rows, int64_t stride)
{
    *rows += stride;
    return *rows - stride;
}

/* Assigns rows of memory to a subtree. */
static void lay_subtree(em_subtree *subtree, int64_t stride, double **rows)
{
    subtree->sum = take_row(rows, stride);
    for (int side = 0; side < 2; side++) {
        subtree->momentum[side] = take_row(rows, stride);
        subtree->velocity[side] = take_row(rows, stride);
    }
}

enum { ROWS_PER_PIECE = 5 };

em_status em_trees_create(em_owner *owner, int64_t n_chain, int64_t dim, int64_t depth,
                          em_trees *out)
{
    const int64_t stride = em_stride(dim);
    em_status status = em_points_create(owner, n_chain, dim, &out->moving);

    status = status ? status : em_points_create(owner, 2 * n_chain, dim, &out->end);
    status = status ? status : em_points_create(owner, n_chain, dim, &out->draw);
    status = status ? status : em_points_create(owner, n_chain, dim, &out->candidate);
    if (!status)
        status = em_own_all(owner, EM_ARRAY(out->tree, n_chain), EM_ARRAY(out->chain, n_chain),
                            EM_ARRAY(out->mass, n_chain), EM_ARRAY(out->step, n_chain),
                            EM_ARRAY(out->rows, n_chain * (1 + depth) * ROWS_PER_PIECE * stride));
    double *rows = out->rows;
    for (int64_t c = 0; !status && c < n_chain; c++) {
        lay_subtree(&out->tree[c].whole, stride, &rows);
        for (int64_t k = 0; k < depth; k++)
            lay_subtree(&out->tree[c].waiting[k], stride, &rows);
    }
    return status;
}

/* ---------------------------------------------------------------- weights, subtrees */

/* w += exp(x); returns exp(x) / exp(w->scale). */
static double add_weight(em_tree_weight *w, double x)
{
    if (x > w->scale + 300) {
        w->sum *= exp(w->scale - x);
        w->scale = x;
    }
    const double added = exp(x - w->scale);
    w->sum += added;
    return added;
}

/* a += b */
static void add_to(em_tree_weight *a, const em_tree_weight *b)
{
    if (b->scale > a->scale)
        *a = (em_tree_weight){b->scale, a->sum * exp(a->scale - b->scale) + b->sum};
    else
        a->sum += b->scale < a->scale ? b->sum * exp(b->scale - a->scale) : b->sum;
}

/* a / b */
static double ratio(const em_tree_weight *a, const em_tree_weight *b)
{
    return a->scale == b->scale ? a->sum / b->sum : a->sum / b->sum * exp(a->scale - b->scale);
}

/* Copies one side of a subtree to a side of another. */
static void copy_side(int64_t stride, const em_subtree *from, int from_side, em_subtree *to,
                      int side)
{
    em_copy_row(stride, from->momentum[from_side], to->momentum[side]);
    em_copy_row(stride, from->velocity[from_side], to->velocity[side]);
}

static void copy_subtree(int64_t stride, const em_subtree *from, em_subtree *to)
{
    to->n = from->n;
    em_copy_row(stride, from->sum, to->sum);
    copy_side(stride, from, 0, to, 0);
    copy_side(stride, from, 1, to, 1);
}

/* Extends the subtree at `side` by `added`. The far side of `added` becomes the side of the
 * subtree. */
static void extend(int64_t stride, em_subtree *subtree, int side, const em_subtree *added)
{
    for (int64_t i = 0; i < stride; i++)
        subtree->sum[i] += added->sum[i];
    subtree->n += added->n;
    copy_side(stride, added, 1, subtree, side);
}

static em_subtree subtree_of(const em_points *points, int64_t row)
{
    double *p = points->momentum + row * points->stride;
    double *v = points->velocity + row * points->stride;

    return (em_subtree){1, p, {p, p}, {v, v}};
}

/* ---------------------------------------------------------------- growing a tree */

/* A uniform random number of the chain's iteration. Numbers 2 j and 2 j + 1 are for the direction
 * of doubling j and for whether its draw is taken. Later numbers are for the leaves, one each. */
static double uniform(const em_tree *t, int64_t index)
{
    return em_uniform(&t->stream, (uint64_t)index);
}

enum { FIRST_LEAF = 2 * MOST_DEPTH };

/* Sets row `row` to the end point from which the next doubling starts. */
static void begin_doubling(em_trees *trees, int64_t row)
{
    const int64_t chain = trees->chain[row];
    em_tree *t = &trees->tree[chain];
    const int front = uniform(t, 2 * t->depth) < 0.5;

    if (front != t->front) {
        em_points_copy(&trees->moving, row, &trees->end, 2 * chain + t->front);
        em_points_copy(&trees->end, 2 * chain + front, &trees->moving, row);
    }
    t->front = front;
    t->n_new = 0;
    t->half = (em_tree_weight){0, 0};
    trees->step[row] = front ? t->step_size : -t->step_size;
}

static int most_depth(int64_t depth, const em_trajectory *trajectory)
{
    return (int)(trajectory->max_depth > 0 && trajectory->max_depth < depth ? trajectory->max_depth
                                                                            : depth);
}

static void init(em_trees *trees, const em_step_context *context, const em_block *block,
                 int64_t depth, int64_t c)
{
    em_tree *t = &trees->tree[c];
    const em_subtree leaf = subtree_of(&trees->moving, c);

    t->stream = em_chain_stream(context, block, c, EM_RNG_TRAJECTORY);
    t->step_size = context->step_size[c];
    t->depth = t->front = 0;
    t->most = most_depth(depth, &context->trajectory);
    t->n_leaf = t->n_gradient = 0;
    t->total = (em_tree_weight){0, 1};
    t->energy = em_hamiltonian_energy(&trees->moving, c);
    t->acceptance = t->worst = 0;
    t->diverged = t->saturated = t->failed = false;
    copy_subtree(block->stride, &leaf, &t->whole);
    em_points_copy(&trees->moving, c, &trees->draw, c);
    em_points_copy(&trees->moving, c, &trees->end, 2 * c + 1);
    trees->chain[c] = c;
    trees->mass[c] = context->mass[c];
    begin_doubling(trees, c);
}

void em_trees_init(em_trees *trees, const em_step_context *context, const em_block *block,
                   int64_t depth)
{
    em_hamiltonian_refresh(context, block, &trees->moving);
    for (int64_t c = 0; c < block->n_chain; c++)
        init(trees, context, block, depth, c);
    trees->n_moving = block->n_chain;
}

/* Computes the weight of the leaf in the row, and makes it the draw of its doubling with a
 * probability proportional to its weight. Returns false if it diverged. */
static bool weigh(em_trees *trees, int64_t row, double energy, double judged)
{
    const int64_t chain = trees->chain[row];
    em_tree *t = &trees->tree[chain];
    const double error = energy - t->energy;
    const double added = add_weight(&t->half, -error);

    if (fabs(error) > fabs(t->worst))
        t->worst = error;
    t->acceptance +=
        judged > t->energy
            ? (judged == energy && t->half.scale == 0 ? added : exp(t->energy - judged))
            : 1;
    t->diverged = !(error < EM_DIVERGENCE_LIMIT);
    if (!t->diverged && (t->n_new == 0 || uniform(t, FIRST_LEAF + t->n_leaf) * t->half.sum < added))
        em_points_copy(&trees->moving, row, &trees->candidate, chain);
    t->n_leaf++;
    return !t->diverged;
}

/* Joins the leaf with the subtrees that wait for it. Returns false if a joined subtree turns back.
 * Otherwise the highest subtree that the leaf completed waits in t->waiting[its level], or one
 * level lower if it is the whole doubling. */
static bool join(const em_points *moving, int64_t row, em_tree *t)
{
    const int64_t stride = moving->stride, n = t->n_new++;
    const em_subtree leaf = subtree_of(moving, row);
    const em_subtree *right = &leaf;
    int level = 0;

    for (; n >> level & 1; level++) {
        em_subtree *left = &t->waiting[level];
        if (em_subtrees_turn(stride, left, 0, right))
            return false;
        extend(stride, left, 1, right);
        right = left;
    }
    if (level == 0)
        copy_subtree(stride, &leaf, &t->waiting[0]);
    else if (level < t->depth) {
        const em_subtree free_one = t->waiting[level];
        t->waiting[level] = t->waiting[level - 1];
        t->waiting[level - 1] = free_one;
    }
    return true;
}

/* Adds the doubling to the trajectory. Returns false if the trajectory has ended. */
static bool finish_doubling(em_trees *trees, int64_t row)
{
    const int64_t chain = trees->chain[row];
    em_tree *t = &trees->tree[chain];
    const em_subtree *added = &t->waiting[t->depth > 0 ? t->depth - 1 : 0];
    const bool turns = em_subtrees_turn(trees->moving.stride, &t->whole, 1 - t->front, added);

    if (uniform(t, 2 * t->depth + 1) < ratio(&t->half, &t->total))
        em_points_copy(&trees->candidate, chain, &trees->draw, chain);
    add_to(&t->total, &t->half);
    extend(trees->moving.stride, &t->whole, t->front, added);
    t->depth++;
    t->saturated = !turns && t->depth == t->most;
    return !turns && !t->saturated;
}

bool em_trees_grow(em_trees *trees, int64_t row, double energy, double judged)
{
    em_tree *t = &trees->tree[trees->chain[row]];

    if (!weigh(trees, row, energy, judged) || !join(&trees->moving, row, t))
        return false;
    if (t->n_new < INT64_C(1) << t->depth)
        return true;
    if (!finish_doubling(trees, row))
        return false;
    begin_doubling(trees, row);
    return true;
}

void em_trees_break(em_trees *trees, int64_t row, bool diverged, double judged)
{
    em_tree *t = &trees->tree[trees->chain[row]];

    t->diverged = diverged;
    if (diverged)
        t->worst = judged - t->energy;
    t->acceptance += judged > t->energy ? exp(t->energy - judged) : 1;
    t->n_leaf++;
}

/* ---------------------------------------------------------------- draws */

const em_stat em_tree_stats[] = {EM_TREE_STATS, EM_STAT_MAX_ENERGY_ERROR, EM_STAT_COUNT};

static void collect(const em_trees *trees, em_block *block, int64_t c)
{
    const em_tree *t = &trees->tree[c];
    const double energy = em_hamiltonian_energy(&trees->draw, c);

    em_hamiltonian_move(&trees->draw, c, block, c);
    em_block_record_steps(block, c, t->step_size, (double)t->n_gradient);
    block->acceptance[c] = block->stat[EM_STAT_ACCEPTANCE_RATE][c] =
        t->n_leaf > 0 ? t->acceptance / (double)t->n_leaf : 0;
    block->failed[c] = t->failed;
    block->stat[EM_STAT_TREE_DEPTH][c] = t->depth;
    block->stat[EM_STAT_DIVERGING][c] = t->diverged;
    block->stat[EM_STAT_REACHED_MAX_TREEDEPTH][c] = t->saturated;
    block->stat[EM_STAT_ENERGY][c] = energy;
    block->stat[EM_STAT_ENERGY_ERROR][c] = energy - t->energy;
    block->stat[EM_STAT_MAX_ENERGY_ERROR][c] = t->worst;
}

em_trajectory em_trees_trajectory(const void *options)
{
    (void)options;
    return (em_trajectory){.kind = EM_TRAJECTORY_U_TURN};
}

/* ---------------------------------------------------------------- an iteration */

static void move_row(em_trees *trees, double *leap, int64_t from, int64_t to)
{
    em_points_copy(&trees->moving, from, &trees->moving, to);
    trees->chain[to] = trees->chain[from];
    trees->mass[to] = trees->mass[from];
    trees->step[to] = trees->step[from];
    leap[to] = leap[from];
}

em_status em_trees_run(em_trees *trees, em_posterior *posterior, double *leap,
                       em_trees_advance *advance, void *to, em_block *block)
{
    while (trees->n_moving > 0) {
        const em_status status =
            em_hamiltonian_leap(posterior, trees->n_moving, trees->mass, leap, &trees->moving);
        int64_t kept = 0;
        if (status < 0)
            return status;
        for (int64_t row = 0; row < trees->n_moving; row++) {
            if (!advance(to, posterior, row))
                continue;
            if (kept < row)
                move_row(trees, leap, row, kept);
            kept++;
        }
        trees->n_moving = kept;
    }
    for (int64_t c = 0; c < block->n_chain; c++)
        collect(trees, block, c);
    return EM_OK;
}
