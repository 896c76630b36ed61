/*
 * The No-U-Turn sampler with multinomial draws (Hoffman & Gelman 2014; Betancourt 2017), as Stan
 * has it: the trajectory doubles, forward or backward, until it turns back or diverges; each
 * doubling of a trajectory of total weight w by one of weight w' takes its draw from the new half
 * with probability min(1, w' / w) (biased progressive sampling); weights are exp(H_0 - H).
 *
 * A doubling is a binary tree whose leaves are leapfrog steps. There is no recursion: leaf n
 * (from 0) completes a subtree of level k for each of the k lowest bits of n that are set, so that
 * a stack of one piece per level holds the subtrees that wait for their other half. Within a
 * doubling the draw is a reservoir: a leaf replaces it with probability weight / (sum so far),
 * which is multinomial whatever the order.
 *
 * The chains of a block go side by side. Those that still move are kept in the first rows of the
 * panel, so that the target is evaluated for them alone; what a chain draws is counted by its
 * number and leaf, never by its row.
 */
#include "sampler/nuts.h"
#include "base/memory.h"
#include "math/rng.h"

#include <math.h>
#include <string.h>

enum { MOST_DEPTH = EM_NUTS_MOST_DEPTH };

static const em_field fields[] = {EM_SAMPLER_FIELDS_WITH("adapt", "0.8", "3"),
                                  EM_NUTS_FIELD(em_nuts_options, max_treedepth),
                                  {0}};

static const em_stat stats[] = {EM_STAT_LP,
                                EM_STAT_ACCEPTANCE_RATE,
                                EM_STAT_STEP_SIZE,
                                EM_STAT_TREE_DEPTH,
                                EM_STAT_N_STEPS,
                                EM_STAT_DIVERGING,
                                EM_STAT_REACHED_MAX_TREEDEPTH,
                                EM_STAT_ENERGY,
                                EM_STAT_ENERGY_ERROR,
                                EM_STAT_MAX_ENERGY_ERROR,
                                EM_STAT_COUNT};

/* A sum of exp(x) as sum exp(scale), for x that may be beyond the range of exp. */
typedef struct weight {
    double scale, sum;
} weight;

/* The trajectory of one chain, as far as it has grown. */
typedef struct tree {
    em_stream stream;   /* its random numbers: see the indices below */
    int most;           /* doublings */
    int depth, front;   /* doublings done; 1: the current one goes forward, 0: backward */
    int64_t n_leaf;     /* leapfrog steps */
    int64_t n_new;      /* of the current doubling */
    weight total, half; /* of the trajectory, of the current doubling */
    double energy;      /* H_0 */
    double acceptance;  /* sum of min(1, exp(H_0 - H)) */
    double worst;       /* the H - H_0 of largest absolute value */
    bool diverged, saturated;
    em_piece whole, waiting[MOST_DEPTH]; /* the trajectory; subtrees by level */
} tree;

typedef struct nuts_sampler {
    em_sampler base;
    const em_nuts_options *options;
    em_points moving;               /* the chains that move, in the first rows */
    em_points end, draw, candidate; /* by chain: both ends; draws of trajectory and doubling */
    tree *trees;                    /* [n_chain] */
    int64_t *chain;                 /* [n_chain] of each row */
    const em_mass **mass;           /* [n_chain] of each row */
    double *step;                   /* [n_chain] of each row, signed */
    double *rows;                   /* of the pieces */
} nuts_sampler;

/* ---------------------------------------------------------------- set up */

static void nuts_destroy(em_sampler *base)
{
    nuts_sampler *s = (nuts_sampler *)base;

    if (s) {
        em_points *const points[] = {&s->moving, &s->end, &s->draw, &s->candidate};
        for (int i = 0; i < 4; i++)
            em_points_release(points[i]);
        em_release(&s->trees);
        em_release(&s->chain);
        em_release(&s->mass);
        em_release(&s->step);
        em_release(&s->rows);
    }
    em_release(&s);
}

static double *take_row(double **rows, int64_t stride)
{
    *rows += stride;
    return *rows - stride;
}

/* Gives a piece its rows. */
static void lay_piece(em_piece *piece, int64_t stride, double **rows)
{
    piece->sum = take_row(rows, stride);
    for (int side = 0; side < 2; side++) {
        piece->momentum[side] = take_row(rows, stride);
        piece->velocity[side] = take_row(rows, stride);
    }
}

enum { ROWS_PER_PIECE = 5 };

static em_status nuts_allocate(nuts_sampler *s, int64_t n_chain, int64_t dim)
{
    const int64_t depth = s->options->max_treedepth, stride = em_stride(dim);
    em_status status = em_points_create(n_chain, dim, &s->moving);

    if (!status)
        status = em_points_create(2 * n_chain, dim, &s->end);
    if (!status)
        status = em_points_create(n_chain, dim, &s->draw);
    if (!status)
        status = em_points_create(n_chain, dim, &s->candidate);
    if (!status)
        status = em_allocate(n_chain, sizeof *s->trees, &s->trees);
    if (!status)
        status = em_allocate(n_chain, sizeof *s->chain, &s->chain);
    if (!status)
        status = em_allocate(n_chain, sizeof *s->mass, &s->mass);
    if (!status)
        status = em_allocate(n_chain, sizeof *s->step, &s->step);
    if (!status)
        status =
            em_allocate(n_chain * (1 + depth) * ROWS_PER_PIECE * stride, sizeof *s->rows, &s->rows);
    double *rows = s->rows;
    for (int64_t c = 0; !status && c < n_chain; c++) {
        lay_piece(&s->trees[c].whole, stride, &rows);
        for (int64_t k = 0; k < depth; k++)
            lay_piece(&s->trees[c].waiting[k], stride, &rows);
    }
    return status;
}

static em_status nuts_create(const void *options, int64_t n_chain, int64_t dim, em_sampler **out)
{
    nuts_sampler *s = NULL;
    em_status status = em_allocate(1, sizeof *s, &s);

    *out = NULL;
    if (!status) {
        s->base.ops = &em_nuts;
        s->options = options;
        status = nuts_allocate(s, n_chain, dim);
    }
    if (status)
        nuts_destroy((em_sampler *)s);
    else
        *out = &s->base;
    return status;
}

/* ---------------------------------------------------------------- weights, pieces */

/* w += exp(x); returns exp(x) / exp(w->scale). */
static double add_weight(weight *w, double x)
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
static void add_to(weight *a, const weight *b)
{
    if (b->scale > a->scale)
        *a = (weight){b->scale, a->sum * exp(a->scale - b->scale) + b->sum};
    else
        a->sum += b->scale < a->scale ? b->sum * exp(b->scale - a->scale) : b->sum;
}

/* a / b */
static double ratio(const weight *a, const weight *b)
{
    return a->scale == b->scale ? a->sum / b->sum : a->sum / b->sum * exp(a->scale - b->scale);
}

static void copy(int64_t stride, const double *from, double *to)
{
    memcpy(to, from, (size_t)stride * sizeof *to);
}

/* One side of a piece becomes a side of another. */
static void copy_side(int64_t stride, const em_piece *from, int from_side, em_piece *to, int side)
{
    copy(stride, from->momentum[from_side], to->momentum[side]);
    copy(stride, from->velocity[from_side], to->velocity[side]);
}

static void copy_piece(int64_t stride, const em_piece *from, em_piece *to)
{
    to->n = from->n;
    copy(stride, from->sum, to->sum);
    copy_side(stride, from, 0, to, 0);
    copy_side(stride, from, 1, to, 1);
}

/* `side` of the piece is now the far side of what was added there. */
static void extend(int64_t stride, em_piece *piece, int side, const em_piece *added)
{
    for (int64_t i = 0; i < stride; i++)
        piece->sum[i] += added->sum[i];
    piece->n += added->n;
    copy_side(stride, added, 1, piece, side);
}

static em_piece piece_of(const em_points *points, int64_t row)
{
    double *p = points->momentum + row * points->stride;
    double *v = points->velocity + row * points->stride;

    return (em_piece){1, p, {p, p}, {v, v}};
}

/* ---------------------------------------------------------------- growing a tree */

/* A uniform of the chain's iteration: 2 j and 2 j + 1 are the direction of doubling j and whether
 * its draw is taken; then one for each leaf. */
static double uniform(const tree *t, int64_t index)
{
    return em_uniform(&t->stream, (uint64_t)index);
}

enum { FIRST_LEAF = 2 * MOST_DEPTH };

/* Row `row` stands at the end from which the next doubling goes on. */
static void begin_doubling(nuts_sampler *s, int64_t row, double step_size)
{
    const int64_t chain = s->chain[row];
    tree *t = &s->trees[chain];
    const int front = uniform(t, 2 * t->depth) < 0.5;

    if (front != t->front) {
        em_points_copy(&s->moving, row, &s->end, 2 * chain + t->front);
        em_points_copy(&s->end, 2 * chain + front, &s->moving, row);
    }
    t->front = front;
    t->n_new = 0;
    t->half = (weight){0, 0};
    s->step[row] = front ? step_size : -step_size;
}

static int64_t most_depth(const em_nuts_options *options, const em_trajectory *trajectory)
{
    return trajectory->max_depth > 0 && trajectory->max_depth < options->max_treedepth
               ? trajectory->max_depth
               : options->max_treedepth;
}

static void plant(nuts_sampler *s, const em_step_context *context, const em_block *block, int64_t c)
{
    tree *t = &s->trees[c];
    const em_piece leaf = piece_of(&s->moving, c);

    t->stream = (em_stream){context->seed, (uint64_t)block->chain[c], (uint64_t)context->iteration,
                            EM_RNG_TRAJECTORY};
    t->depth = t->front = 0;
    t->most = (int)most_depth(s->options, &context->trajectory);
    t->n_leaf = 0;
    t->total = (weight){0, 1};
    t->energy = em_hamiltonian_energy(&s->moving, c);
    t->acceptance = t->worst = 0;
    t->diverged = t->saturated = false;
    copy_piece(block->stride, &leaf, &t->whole);
    em_points_copy(&s->moving, c, &s->draw, c);
    em_points_copy(&s->moving, c, &s->end, 2 * c + 1);
    s->chain[c] = c;
    s->mass[c] = context->mass[c];
    begin_doubling(s, c, context->step_size[c]);
}

/* Weighs the leaf that the row stands on, and keeps it as the draw of its doubling with the
 * probability of its weight. False: it diverged. */
static bool weigh(nuts_sampler *s, int64_t row)
{
    const int64_t chain = s->chain[row];
    tree *t = &s->trees[chain];
    const double error = em_hamiltonian_energy(&s->moving, row) - t->energy;
    const double added = add_weight(&t->half, -error);

    if (fabs(error) > fabs(t->worst))
        t->worst = error;
    t->acceptance += error > 0 ? (t->half.scale == 0 ? added : exp(-error)) : 1;
    t->diverged = !(error < EM_DIVERGENCE_LIMIT);
    if (!t->diverged && (t->n_new == 0 || uniform(t, FIRST_LEAF + t->n_leaf) * t->half.sum < added))
        em_points_copy(&s->moving, row, &s->candidate, chain);
    t->n_leaf++;
    return !t->diverged;
}

/* Joins the leaf with the subtrees that wait for it. False: one of them turns back. Else the
 * subtree of the highest level that it completed waits in t->waiting[that level]; if that is the
 * whole doubling, one below. */
static bool join(const em_points *moving, int64_t row, tree *t)
{
    const int64_t stride = moving->stride, n = t->n_new++;
    const em_piece leaf = piece_of(moving, row);
    const em_piece *right = &leaf;
    int level = 0;

    for (; n >> level & 1; level++) {
        em_piece *left = &t->waiting[level];
        if (em_pieces_turn(stride, left, 0, right, 1))
            return false;
        extend(stride, left, 1, right);
        right = left;
    }
    if (level == 0)
        copy_piece(stride, &leaf, &t->waiting[0]);
    else if (level < t->depth) {
        const em_piece free_one = t->waiting[level];
        t->waiting[level] = t->waiting[level - 1];
        t->waiting[level - 1] = free_one;
    }
    return true;
}

/* Makes the doubling part of the trajectory. False: that is its end. */
static bool finish_doubling(nuts_sampler *s, int64_t row)
{
    const int64_t chain = s->chain[row];
    tree *t = &s->trees[chain];
    const em_piece *added = &t->waiting[t->depth > 0 ? t->depth - 1 : 0];
    const bool turns = em_pieces_turn(s->moving.stride, &t->whole, 1 - t->front, added, 1);

    if (uniform(t, 2 * t->depth + 1) < ratio(&t->half, &t->total))
        em_points_copy(&s->candidate, chain, &s->draw, chain);
    add_to(&t->total, &t->half);
    extend(s->moving.stride, &t->whole, t->front, added);
    t->depth++;
    t->saturated = !turns && t->depth == t->most;
    return !turns && !t->saturated;
}

/* What the leapfrog step of a row has brought. False: its trajectory has ended. */
static bool grow(nuts_sampler *s, int64_t row, double step_size)
{
    tree *t = &s->trees[s->chain[row]];

    if (!weigh(s, row) || !join(&s->moving, row, t))
        return false;
    if (t->n_new < INT64_C(1) << t->depth)
        return true;
    if (!finish_doubling(s, row))
        return false;
    begin_doubling(s, row, step_size);
    return true;
}

/* ---------------------------------------------------------------- an iteration */

static void harvest(const nuts_sampler *s, const em_step_context *context, em_block *block,
                    int64_t c)
{
    const tree *t = &s->trees[c];
    const double energy = em_hamiltonian_energy(&s->draw, c);

    em_hamiltonian_move(&s->draw, c, block, c);
    block->stat[EM_STAT_LP][c] = block->log_density[c];
    block->acceptance[c] = block->stat[EM_STAT_ACCEPTANCE_RATE][c] =
        t->acceptance / (double)t->n_leaf;
    block->stat[EM_STAT_STEP_SIZE][c] = context->step_size[c];
    block->stat[EM_STAT_TREE_DEPTH][c] = t->depth;
    block->n_step[c] = block->stat[EM_STAT_N_STEPS][c] = (double)t->n_leaf;
    block->stat[EM_STAT_DIVERGING][c] = t->diverged;
    block->stat[EM_STAT_REACHED_MAX_TREEDEPTH][c] = t->saturated;
    block->stat[EM_STAT_ENERGY][c] = energy;
    block->stat[EM_STAT_ENERGY_ERROR][c] = energy - t->energy;
    block->stat[EM_STAT_MAX_ENERGY_ERROR][c] = t->worst;
}

/* Row `from` becomes row `to`. */
static void move_row(nuts_sampler *s, int64_t from, int64_t to)
{
    em_points_copy(&s->moving, from, &s->moving, to);
    s->chain[to] = s->chain[from];
    s->mass[to] = s->mass[from];
    s->step[to] = s->step[from];
}

static em_status nuts_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    nuts_sampler *s = (nuts_sampler *)base;
    int64_t n_moving = block->n_chain;

    em_hamiltonian_refresh(context, block, &s->moving);
    for (int64_t c = 0; c < block->n_chain; c++)
        plant(s, context, block, c);
    while (n_moving > 0) {
        const em_status status =
            em_hamiltonian_leap(context->posterior, n_moving, s->mass, s->step, &s->moving);
        int64_t kept = 0;
        if (status < 0)
            return status;
        for (int64_t row = 0; row < n_moving; row++) {
            if (!grow(s, row, context->step_size[s->chain[row]]))
                continue;
            if (kept < row)
                move_row(s, row, kept);
            kept++;
        }
        n_moving = kept;
    }
    for (int64_t c = 0; c < block->n_chain; c++)
        harvest(s, context, block, c);
    return EM_OK;
}

static em_trajectory nuts_trajectory(const void *options)
{
    (void)options;
    return (em_trajectory){.kind = EM_TRAJECTORY_U_TURN};
}

static em_status nuts_probe(em_sampler *base, const em_step_context *context, const em_block *block,
                            double *acceptance)
{
    return em_hamiltonian_probe(context, block, &((nuts_sampler *)base)->moving, acceptance);
}

const em_sampler_ops em_nuts = {
    .name = "nuts",
    .doc = "No-U-Turn sampler: multinomial, with a trajectory that ends where it turns back",
    .source = "Hoffman & Gelman 2014; Betancourt 2017, arXiv:1701.02434, appendix A; Stan",
    .options_size = sizeof(em_nuts_options),
    .fields = fields,
    .stats = stats,
    .create = nuts_create,
    .destroy = nuts_destroy,
    .step = nuts_step,
    .trajectory = nuts_trajectory,
    .probe = nuts_probe,
};
