#include "sampler/hamiltonian/hamiltonian.h"

#include "base/clones.h"
#include "base/memory.h"
#include "math/rng.h"

#include <math.h>

em_status em_points_create(em_owner *owner, int64_t n, int64_t dim, em_points *out)
{
    const int64_t panel = n * em_stride(dim);

    *out = (em_points){.n = n, .dim = dim, .stride = em_stride(dim)};
    return em_own_all(owner, EM_ARRAY(out->chain, n), EM_ARRAY(out->theta, panel),
                      EM_ARRAY(out->momentum, panel), EM_ARRAY(out->velocity, panel),
                      EM_ARRAY(out->gradient, panel), EM_ARRAY(out->acceleration, panel),
                      EM_ARRAY(out->log_density, n));
}

void em_points_copy(const em_points *source, int64_t from, em_points *target, int64_t to)
{
    const int64_t stride = source->stride, i = from * stride, k = to * stride;

    em_copy_row(stride, source->theta + i, target->theta + k);
    em_copy_row(stride, source->momentum + i, target->momentum + k);
    em_copy_row(stride, source->velocity + i, target->velocity + k);
    em_copy_row(stride, source->gradient + i, target->gradient + k);
    em_copy_row(stride, source->acceleration + i, target->acceleration + k);
    target->chain[to] = source->chain[from];
    target->log_density[to] = source->log_density[from];
}

void em_hamiltonian_refresh(const em_step_context *context, const em_block *block,
                            em_points *points)
{
    const size_t panel = (size_t)(block->n_chain * block->stride) * sizeof(double);
    double *z = points->velocity;

    for (int64_t c = 0; c < block->n_chain; c++) {
        const em_stream stream = em_chain_stream(context, block, c, EM_RNG_MOMENTUM);
        double *row = z + c * block->stride;
        em_normals(&stream, block->dim, row);
        memset(row + block->dim, 0, (size_t)(block->stride - block->dim) * sizeof *row);
    }
    em_mass_momentum(context->mass, block->n_chain, z, points->momentum);
    em_mass_velocity(context->mass, block->n_chain, points->momentum, points->velocity);
    memcpy(points->chain, block->chain, (size_t)block->n_chain * sizeof *points->chain);
    memcpy(points->theta, block->theta, panel);
    memcpy(points->gradient, block->gradient, panel);
    em_mass_velocity(context->mass, block->n_chain, points->gradient, points->acceleration);
    memcpy(points->log_density, block->log_density, (size_t)block->n_chain * sizeof(double));
    points->steep = context->steep;
    for (int64_t c = 0; points->steep && c < block->n_chain; c++)
        em_steep_points_begin(points->steep, block->chain[c]);
}

/* Moves p, and v with it, by the share b of a step. */
EM_CLONES static void kick(const em_points *points, int64_t n, double b, const double *step_size)
{
    const int64_t stride = points->stride;

    for (int64_t r = 0; r < n; r++) {
        const double size = b * step_size[r];
        double *restrict p = points->momentum + r * stride;
        double *restrict v = points->velocity + r * stride;
        const double *restrict g = points->gradient + r * stride;
        const double *restrict a = points->acceleration + r * stride;
        for (int64_t i = 0; i < stride; i++) {
            p[i] += size * g[i];
            v[i] += size * a[i];
        }
    }
}

/* Moves theta by the share a of a step. */
EM_CLONES static void drift(const em_points *points, int64_t n, double a, const double *step_size)
{
    const int64_t stride = points->stride;

    for (int64_t r = 0; r < n; r++) {
        const double size = a * step_size[r];
        double *restrict theta = points->theta + r * stride;
        const double *restrict v = points->velocity + r * stride;
        for (int64_t i = 0; i < stride; i++)
            theta[i] += size * v[i];
    }
}

/* The sum of the lanes of a row: not in the order of em_add_lanes. */
static inline double hamiltonian_total(const double *x)
{
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

EM_CLONES static double product_of_rows(int64_t stride, const double *x, const double *y)
{
    double sum[EM_LANES] = {0};

    for (int64_t i = 0; i < stride; i += EM_LANES)
        for (int k = 0; k < EM_LANES; k++)
            sum[k] += x[i + k] * y[i + k];
    return hamiltonian_total(sum);
}

/* Passes the points of rows 0 .. n - 1 to the steep points. */
static void note_steep(const em_points *points, int64_t n)
{
    for (int64_t r = 0; points->steep && r < n; r++) {
        const int64_t at = r * points->stride;
        em_steep_points_take(
            points->steep, points->chain[r],
            product_of_rows(points->stride, points->gradient + at, points->acceleration + at),
            points->log_density[r], points->theta + at);
    }
}

em_status em_hamiltonian_stage(em_posterior *posterior, int64_t n, const em_mass *const *mass,
                               const em_splitting *splitting, int stage, const double *step_size,
                               em_points *points)
{
    const em_query query = {.n_chain = n,
                            .stride = points->stride,
                            .chain = points->chain,
                            .theta = points->theta,
                            .log_density = points->log_density,
                            .gradient = points->gradient};

    if (stage == 0)
        kick(points, n, splitting->kick[0], step_size);
    drift(points, n, splitting->drift[stage], step_size);
    em_status status = em_posterior_evaluate(posterior, &query);
    if (status < 0)
        return status;
    em_mass_velocity(mass, n, points->gradient, points->acceleration);
    note_steep(points, n);
    kick(points, n, splitting->kick[stage + 1], step_size);
    return EM_OK;
}

double em_hamiltonian_energy(const em_points *points, int64_t row)
{
    const int64_t at = row * points->stride;
    const double energy =
        0.5 * product_of_rows(points->stride, points->momentum + at, points->velocity + at) -
        points->log_density[row];

    return isfinite(energy) ? energy : INFINITY;
}

bool em_hamiltonian_failed(const em_posterior *posterior, const em_points *points, int64_t row)
{
    return isnan(points->log_density[row]) && em_posterior_may_fail(posterior);
}

em_status em_hamiltonian_probe(const em_step_context *context, const em_block *block,
                               em_points *points, double *acceptance)
{
    em_hamiltonian_refresh(context, block, points);
    for (int64_t c = 0; c < block->n_chain; c++)
        acceptance[c] = em_hamiltonian_energy(points, c);
    em_status status = em_hamiltonian_leap(context->posterior, block->n_chain, context->mass,
                                           context->step_size, points);
    for (int64_t c = 0; !status && c < block->n_chain; c++)
        acceptance[c] = fmin(1, exp(acceptance[c] - em_hamiltonian_energy(points, c)));
    return status;
}

EM_CLONES static double product_with_sum(int64_t stride, const double *v, const double *x,
                                         const double *y)
{
    double sum[EM_LANES] = {0};

    for (int64_t i = 0; i < stride; i += EM_LANES)
        for (int k = 0; k < EM_LANES; k++)
            sum[k] += v[i + k] * (x[i + k] + y[i + k]);
    return hamiltonian_total(sum);
}

/* Whether both velocities have a positive product with x + y, so that the trajectory does not turn
 * back. */
static bool go_along(int64_t stride, const double *v, const double *w, const double *x,
                     const double *y)
{
    return product_with_sum(stride, v, x, y) > 0 && product_with_sum(stride, w, x, y) > 0;
}

bool em_subtrees_turn(int64_t stride, const em_subtree *a, int far_a, const em_subtree *b)
{
    const int near_a = 1 - far_a, near_b = 0, far_b = 1;

    if (!go_along(stride, a->velocity[far_a], b->velocity[far_b], a->sum, b->sum))
        return true;
    if (a->n == 1 && b->n == 1) /* the further checks are the same one */
        return false;
    return !(
        go_along(stride, a->velocity[far_a], b->velocity[near_b], a->sum, b->momentum[near_b]) &&
        go_along(stride, a->velocity[near_a], b->velocity[far_b], b->sum, a->momentum[near_a]));
}

void em_hamiltonian_move(const em_points *points, int64_t row, em_block *block, int64_t c)
{
    const int64_t stride = block->stride;

    em_copy_row(stride, points->theta + row * stride, block->theta + c * stride);
    em_copy_row(stride, points->momentum + row * stride, block->momentum + c * stride);
    em_copy_row(stride, points->gradient + row * stride, block->gradient + c * stride);
    block->log_density[c] = points->log_density[row];
}

int64_t em_draw_length(const em_step_context *context, int64_t mean, bool jitter)
{
    const em_stream stream = {context->seed, EM_ALL_CHAINS, (uint64_t)context->iteration,
                              EM_RNG_TRAJECTORY};

    return jitter ? 1 + (int64_t)em_uniform_below(&stream, 0, (uint64_t)(2 * mean - 1)) : mean;
}
