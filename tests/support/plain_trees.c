#include "support/plain_trees.h"

#include "math/rng.h"

#include <math.h>

static void apply(const plain_trees *t, const double *x, double *out)
{
    for (int i = 0; i < t->dim; i++) {
        out[i] = 0;
        for (int j = 0; j < t->dim; j++)
            out[i] += t->inverse[i * t->dim + j] * x[j];
    }
}

static double inner(const plain_trees *t, const double *x, const double *y)
{
    double v[PLAIN_MOST_DIM], sum = 0;

    apply(t, x, v);
    for (int i = 0; i < t->dim; i++)
        sum += v[i] * y[i];
    return sum;
}

double plain_energy(const plain_trees *t, const plain_point *z)
{
    return 0.5 * inner(t, z->p, z->p) - z->log_density;
}

void plain_leap(const plain_trees *t, plain_point *z, double step)
{
    double v[PLAIN_MOST_DIM];

    for (int i = 0; i < t->dim; i++)
        z->p[i] += 0.5 * step * z->g[i];
    apply(t, z->p, v);
    for (int i = 0; i < t->dim; i++)
        z->theta[i] += step * v[i];
    t->evaluate(z);
    for (int i = 0; i < t->dim; i++)
        z->p[i] += 0.5 * step * z->g[i];
}

/* Leaves first .. last of the row go along with their own sum of momenta, at both ends. */
static bool straight(const plain_trees *t, const plain_point *leaf, int first, int last)
{
    double sum[PLAIN_MOST_DIM] = {0};

    for (int k = first; k <= last; k++)
        for (int i = 0; i < t->dim; i++)
            sum[i] += leaf[k].p[i];
    return inner(t, leaf[first].p, sum) > 0 && inner(t, leaf[last].p, sum) > 0;
}

/* Two neighbouring halves, split before leaf `middle`. */
static bool joined(const plain_trees *t, const plain_point *leaf, int first, int middle, int last)
{
    return straight(t, leaf, first, last) &&
           (t->skips_checks ||
            (straight(t, leaf, first, middle) && straight(t, leaf, middle - 1, last)));
}

/* A subtree of 2^depth leaves from the point on; false: it is not to be used. */
static bool build(plain_trees *t, int depth, double h, plain_point *z)
{
    const int first = t->n_leaf, half = 1 << depth >> 1;

    if (depth == 0) {
        if (!t->step(t, z, h))
            return false;
        t->leaf[t->n_leaf++] = *z;
        return !t->diverged;
    }
    return build(t, depth - 1, h, z) && build(t, depth - 1, h, z) &&
           joined(t, t->leaf, first, first + half, t->n_leaf - 1);
}

static double uniform(const plain_trees *t, int64_t iteration, int64_t index)
{
    const em_stream stream = {t->seed, (uint64_t)t->chain, (uint64_t)iteration, EM_RNG_TRAJECTORY};

    return em_uniform(&stream, (uint64_t)index);
}

/* The draw of a doubling: leaf k takes the place of the one before with probability w_k / (w_0 +
 * ... + w_k). Its total weight into *total. */
static plain_point draw_leaf(const plain_trees *t, int64_t iteration, int n_before, double *total)
{
    plain_point draw = t->leaf[0];

    *total = 0;
    for (int k = 0; k < t->n_leaf; k++) {
        const double w = exp(t->initial_energy - plain_energy(t, &t->leaf[k]));
        *total += w;
        if (k > 0 && uniform(t, iteration, 48 + n_before + k) < w / *total)
            draw = t->leaf[k];
    }
    return draw;
}

plain_result plain_iteration(plain_trees *t, plain_point z, int64_t iteration)
{
    enum { MOST = PLAIN_MOST_LEAVES };
    static plain_point trajectory[2 * MOST + 1]; /* in the order of time, from `back` to `front` */
    int back = MOST, front = MOST;
    plain_result r = {.draw = z};
    double total = 1;

    t->initial_energy = plain_energy(t, &z);
    trajectory[back] = z;
    while (r.depth < t->max_depth) {
        const bool forward = uniform(t, iteration, 2 * r.depth) < 0.5;
        plain_point end = trajectory[forward ? front : back];
        double weight;
        t->n_leaf = 0;
        t->diverged = false;
        const bool usable = build(t, r.depth, forward ? t->step_size : -t->step_size, &end);
        const int n_before = r.n_steps;
        r.n_steps += t->n_leaf;
        r.diverging = t->diverged;
        if (!usable)
            return r;
        const plain_point draw = draw_leaf(t, iteration, n_before, &weight);
        if (uniform(t, iteration, 2 * r.depth + 1) < weight / total)
            r.draw = draw;
        total += weight;
        for (int k = 0; k < t->n_leaf; k++)
            trajectory[forward ? ++front : --back] = t->leaf[k];
        r.depth++;
        if (!joined(t, trajectory, back, forward ? front - t->n_leaf + 1 : back + t->n_leaf, front))
            return r;
    }
    r.saturated = true;
    return r;
}

bool plain_differs(const plain_trees *t, const plain_result *r, const em_block *block)
{
    double apart = 0;

    for (int k = 0; k < t->dim; k++)
        apart = fmax(apart, fabs(r->draw.theta[k] - block->theta[k]) +
                                fabs(r->draw.p[k] - block->momentum[k]));
    return !(apart < 1e-9) || r->depth != block->stat[EM_STAT_TREE_DEPTH][0] ||
           r->diverging != block->stat[EM_STAT_DIVERGING][0] ||
           r->saturated != block->stat[EM_STAT_REACHED_MAX_TREEDEPTH][0];
}
