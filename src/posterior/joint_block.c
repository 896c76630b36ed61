/* The block of rows of a map that are mapped together. */
#include "posterior/joint_block.h"

#include "math/log_product.h"

#include <math.h>
#include <string.h>

/* The most elements of L, for each member. */
enum { MOST_ELEMENTS = 32 };

static const em_noncentring_row *row_of(const em_noncentring *map, int64_t a)
{
    return &map->row[map->child[map->joint->at + a]];
}

static em_joint_factor factor_of(const em_noncentring *map, int64_t a)
{
    const em_noncentring_row *row = row_of(map, a);
    em_joint_factor out = {.n = 1, .position = {a}, .coefficient = {1}};

    for (int j = 0; j < EM_MOST_LOCATIONS && row->location[j] >= 0; j++) {
        const int64_t at = map->joint->position[(int64_t)row->location[j]];
        if (at < 0)
            continue;
        out.position[out.n] = at;
        out.coefficient[out.n++] = -row->coefficient[j];
    }
    return out;
}

/* ---------------------------------------------------------------- the members */

/* Sorts the members by the number of steps from parameters outside the block, the highest first. */
static void order_members(em_noncentring *map)
{
    em_joint_block *b = map->joint;
    int64_t *child = map->child + b->at, *depth = b->first;
    bool has_changed = true;

    memset(depth, 0, (size_t)b->n * sizeof *depth);
    for (int64_t pass = 0; has_changed && pass < b->n; pass++) {
        has_changed = false;
        for (int64_t a = 0; a < b->n; a++) {
            const em_joint_factor f = factor_of(map, a);
            for (int e = 1; e < f.n; e++)
                if (depth[a] <= depth[f.position[e]]) {
                    depth[a] = depth[f.position[e]] + 1;
                    has_changed = true;
                }
        }
    }
    for (int64_t a = 1; a < b->n; a++) {
        const int64_t i = child[a], here = depth[a];
        int64_t to = a;
        for (; to > 0 && depth[to - 1] < here; to--) {
            child[to] = child[to - 1];
            depth[to] = depth[to - 1];
        }
        child[to] = i;
        depth[to] = here;
    }
    for (int64_t a = 0; a < b->n; a++)
        b->position[child[a]] = a;
}

/* Sets the vectors a_i, and the first column of each row; returns the number of elements. */
static int64_t set_profile(em_noncentring *map)
{
    em_joint_block *b = map->joint;
    int64_t total = 0;

    for (int64_t a = 0; a < b->n; a++)
        b->first[a] = a;
    for (int64_t a = 0; a < b->n; a++) {
        const em_joint_factor f = b->factor[a] = factor_of(map, a);
        for (int e = 0; e < f.n; e++)
            for (int q = 0; q < f.n; q++)
                b->first[f.position[e]] = em_least(b->first[f.position[e]], f.position[q]);
    }
    for (int64_t a = 0; a < b->n; a++)
        total += a - b->first[a] + 1;
    return total;
}

static em_status lay_out(em_joint_block *b, int64_t total)
{
    double *next;
    const em_status status =
        em_own_all(&b->memory, EM_ARRAY(b->row, b->n), EM_ARRAY(b->adjoint, b->n),
                   EM_ARRAY(b->element, 2 * total), EM_ARRAY(b->mean, b->n),
                   EM_ARRAY(b->sample, b->n), EM_ARRAY(b->of_z, b->n), EM_ARRAY(b->solved, b->n),
                   EM_ARRAY(b->half, b->n), EM_ARRAY(b->least, b->n), EM_ARRAY(b->of_held, b->n),
                   EM_ARRAY(b->is_held, b->n), EM_ARRAY(b->room, b->n));

    next = b->element;
    for (int64_t a = 0; !status && a < b->n; a++) {
        b->row[a] = next - b->first[a];
        b->adjoint[a] = b->row[a] + total;
        next += a - b->first[a] + 1;
    }
    return status;
}

em_status em_joint_block_set(em_noncentring *map)
{
    em_joint_block *b;
    int64_t n = 0, at = 0;

    em_release_owner(&map->joint);
    for (int64_t c = map->n_child - 1; c >= 0; c--)
        if (map->row[map->child[c]].form == EM_SCALE_JOINT) {
            n++;
            at = c;
        }
    if (n == 0)
        return EM_OK;
    em_status status = em_allocate_all(EM_ARRAY(map->joint, 1));
    if (status)
        return status;
    for (int64_t a = 0; a < n; a++)
        if (at + a >= map->n_child || map->row[map->child[at + a]].form != EM_SCALE_JOINT)
            return em_fail(EM_EDATA, "the map of non-centred parameters has a block of rows with "
                                     "several levels");
    b = map->joint;
    b->n = n;
    b->at = at;
    status = em_own_all(&b->memory, EM_ARRAY(b->position, map->dim), EM_ARRAY(b->first, n),
                        EM_ARRAY(b->factor, n));
    if (status)
        return status;
    for (int64_t i = 0; i < map->dim; i++)
        b->position[i] = -1;
    for (int64_t a = 0; a < n; a++)
        b->position[map->child[at + a]] = a;
    order_members(map);
    const int64_t total = set_profile(map);
    if (total > MOST_ELEMENTS * n)
        return em_fail(EM_EDATA, "the map of non-centred parameters has a block with %lld elements",
                       (long long)total);
    return lay_out(b, total);
}

/* ---------------------------------------------------------------- the precision */

/* Computes the precision Q, and h in b->mean. */
static void set_precision(const em_noncentring *map, const em_conditional *at)
{
    em_joint_block *b = map->joint;

    for (int64_t a = 0; a < b->n; a++) {
        const em_noncentring_row *row = row_of(map, a);
        for (int64_t c = b->first[a]; c < a; c++)
            b->row[a][c] = 0;
        b->row[a][a] = at[a].prior;
        b->mean[a] = at[a].prior * row->centre;
    }
    for (int64_t a = 0; a < b->n; a++) {
        const em_joint_factor *f = &b->factor[a];
        const double precision = 1 / (at[a].scale * at[a].scale);
        b->least[a] = precision + at[a].prior;
        for (int e = 0; e < f->n; e++) {
            const int64_t p = f->position[e];
            b->mean[p] += precision * f->coefficient[e] * at[a].location;
            for (int q = 0; q < f->n; q++)
                if (f->position[q] <= p)
                    b->row[p][f->position[q]] += precision * f->coefficient[e] * f->coefficient[q];
        }
    }
}

/* sum over c < end of x[c] y[c], from the first column of both. */
static double inner(int64_t first, int64_t end, const double *x, const double *y)
{
    double sum = 0;

    for (int64_t c = first; c < end; c++)
        sum += x[c] * y[c];
    return sum;
}

/* Replaces Q by L. No pivot can be smaller than the precision of the member's own prior and data,
 * so one that rounding makes smaller is held at that. Returns the log of its determinant. */
static double factorise(const em_joint_block *b)
{
    em_log_product determinant = {.product = 1};

    for (int64_t a = 0; a < b->n; a++) {
        double *row = b->row[a];
        for (int64_t c = b->first[a]; c < a; c++) {
            const int64_t first = em_most(b->first[a], b->first[c]);
            row[c] = (row[c] - inner(first, c, row, b->row[c])) / b->row[c][c];
        }
        const double pivot = row[a] - inner(b->first[a], a, row, row);
        b->is_held[a] = !(pivot > b->least[a]);
        row[a] = sqrt(b->is_held[a] ? b->least[a] : pivot);
        em_log_product_multiply(&determinant, row[a]);
    }
    return em_log_product_value(&determinant);
}

/* x = L^-1 x, and x = L^-T x. */
static void solve(const em_joint_block *b, double *x)
{
    for (int64_t a = 0; a < b->n; a++)
        x[a] = (x[a] - inner(b->first[a], a, b->row[a], x)) / b->row[a][a];
}

static void solve_transposed(const em_joint_block *b, double *x)
{
    for (int64_t a = b->n - 1; a >= 0; a--) {
        x[a] /= b->row[a][a];
        for (int64_t c = b->first[a]; c < a; c++)
            x[c] -= b->row[a][c] * x[a];
    }
}

/* Computes L, L^-1 h and the mean. Returns the log of the determinant of L. */
static double condition(const em_noncentring *map, const em_conditional *at)
{
    const em_joint_block *b = map->joint;

    set_precision(map, at);
    const double log_determinant = factorise(b);
    solve(b, b->mean);
    memcpy(b->half, b->mean, (size_t)b->n * sizeof *b->half);
    solve_transposed(b, b->mean);
    return log_determinant;
}

/* ---------------------------------------------------------------- the map */

static void gather(const em_noncentring *map, const double *x, double *out)
{
    for (int64_t a = 0; a < map->joint->n; a++)
        out[a] = x[map->child[map->joint->at + a]];
}

static void scatter(const em_noncentring *map, const double *from, double *x)
{
    for (int64_t a = 0; a < map->joint->n; a++)
        x[map->child[map->joint->at + a]] = from[a];
}

/* Computes L, the mean and the sample at z. Returns the log of the determinant of L. */
static double prepare(const em_noncentring *map, const double *z, const em_conditional *at)
{
    const double log_determinant = condition(map, at);

    gather(map, z, map->joint->sample);
    solve_transposed(map->joint, map->joint->sample);
    return log_determinant;
}

double em_joint_block_to_model(const em_noncentring *map, const em_conditional *at, double *x)
{
    const em_joint_block *b = map->joint;
    const double log_determinant = prepare(map, x, at);

    for (int64_t a = 0; a < b->n; a++)
        b->sample[a] += b->mean[a];
    scatter(map, b->sample, x);
    return log_determinant;
}

double em_joint_block_from_model(const em_noncentring *map, const em_conditional *at, double *x)
{
    const em_joint_block *b = map->joint;
    const double log_determinant = condition(map, at);
    double *away = b->sample, *z = b->solved;

    gather(map, x, away);
    for (int64_t a = 0; a < b->n; a++) {
        away[a] -= b->mean[a];
        z[a] = b->row[a][a] * away[a];
        for (int64_t c = b->first[a]; c < a; c++)
            z[c] += b->row[a][c] * away[a];
    }
    scatter(map, z, x);
    return log_determinant;
}

/* ---------------------------------------------------------------- gradients */

/* Turns derivatives by the elements of L into those by the elements of Q (Smith 1995), and those by
 * pivots that are held. */
static void differentiate_factor(const em_joint_block *b)
{
    for (int64_t a = b->n - 1; a >= 0; a--) {
        double *own = b->adjoint[a], *row = b->row[a];
        own[a] /= 2 * row[a];
        b->of_held[a] = b->is_held[a] ? own[a] : 0;
        own[a] -= b->of_held[a];
        for (int64_t k = b->first[a]; k < a; k++)
            own[k] -= 2 * own[a] * row[k];
        for (int64_t c = a - 1; c >= b->first[a]; c--) {
            double *other = b->adjoint[c];
            own[c] /= b->row[c][c];
            other[c] -= own[c] * row[c];
            for (int64_t k = em_most(b->first[a], b->first[c]); k < c; k++) {
                own[k] -= own[c] * b->row[c][k];
                other[k] -= own[c] * row[k];
            }
        }
    }
}

/* Adds `sign` times the derivatives by the log scales and by the locations outside the block. The
 * block has L, its mean, the sample, and the derivatives by z. */
static void spread(const em_noncentring *map, const em_conditional *at, double sign,
                   double *gradient)
{
    const em_joint_block *b = map->joint;
    double *solved = b->solved;

    memcpy(solved, b->of_z, (size_t)b->n * sizeof *solved);
    solve_transposed(b, solved);
    for (int64_t a = 0; a < b->n; a++) {
        for (int64_t c = b->first[a]; c <= a; c++)
            b->adjoint[a][c] = -(b->sample[a] + b->mean[a]) * b->of_z[c] - solved[a] * b->half[c];
        b->adjoint[a][a] -= 1 / b->row[a][a];
    }
    differentiate_factor(b);
    for (int64_t a = 0; a < b->n; a++) {
        const em_noncentring_row *row = row_of(map, a);
        const em_joint_factor *f = &b->factor[a];
        const double precision = 1 / (at[a].scale * at[a].scale);
        double by_precision = b->of_held[a], by_location = 0;
        for (int e = 0; e < f->n; e++) {
            by_location += f->coefficient[e] * solved[f->position[e]];
            for (int q = 0; q < f->n; q++)
                if (f->position[q] <= f->position[e])
                    by_precision += b->adjoint[f->position[e]][f->position[q]] * f->coefficient[e] *
                                    f->coefficient[q];
        }
        by_precision += at[a].location * by_location;
        gradient[(int64_t)row->scale] -= sign * 2 * precision * by_precision * at[a].log_scale_by;
        if (row->second_degree != 0)
            gradient[(int64_t)row->second_scale] -=
                sign * 2 * at[a].prior *
                (b->adjoint[a][a] + b->of_held[a] + solved[a] * row->centre) *
                at[a].log_scale_by_second;
        for (int j = 0; j < EM_MOST_LOCATIONS && row->location[j] >= 0; j++)
            if (!em_is_in_joint_block(map, (int64_t)row->location[j]))
                gradient[(int64_t)row->location[j]] +=
                    sign * row->coefficient[j] * precision * by_location;
    }
}

void em_joint_block_pull(const em_noncentring *map, const double *z, const em_conditional *at,
                         double *gradient)
{
    const em_joint_block *b = map->joint;

    prepare(map, z, at);
    gather(map, gradient, b->of_z);
    solve(b, b->of_z);
    spread(map, at, 1, gradient);
    scatter(map, b->of_z, gradient);
}

void em_joint_block_push(const em_noncentring *map, const double *z, const em_conditional *at,
                         double *gradient)
{
    const em_joint_block *b = map->joint;

    prepare(map, z, at);
    gather(map, gradient, b->of_z);
    spread(map, at, -1, gradient);
    for (int64_t a = 0; a < b->n; a++)
        gradient[map->child[b->at + a]] = inner(b->first[a], a + 1, b->row[a], b->of_z);
}
