#include "adaptation/starts/outer_mass.h"

#include "adaptation/starts/ascent.h"
#include "adaptation/starts/draw_mass.h"
#include "base/memory.h"
#include "math/linalg.h"
#include "math/rng.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

/* The least number of rays, and the largest number of points of a ray. */
enum { LEAST_RAYS = 4, MOST_POINTS = 40 };

/* The random numbers of rays begin above those of starts. */
static const uint64_t first_ray = UINT64_C(1) << 33;

/* Radii reach from `nearest` to `farthest` times sqrt(dim). They begin inside of the scales,
 * because the scales may be those of positions that the chains have left in warmup. */
static const double nearest = 0.125, farthest = 60;

/* The least fall and rise, in logs of mass, between the draws' part and the outer one. */
static const double least_fall = 3;

/* An outer part whose largest mass at one radius is this much less, in logs, is ignored. */
static const double negligible = 15;

/* The draws miss the outer part if they have less than this share of what its mass leads to
 * expect. */
static const double least_share = 0.1;

void em_outer_mass_release(em_outer_mass *outer)
{
    em_release_all(&outer->centre, &outer->precision, &outer->n_outer, &outer->sum);
    outer->exists = false;
}

static em_status allocate(em_outer_mass *outer, int64_t n_local, int64_t dim)
{
    return em_allocate_all(EM_ARRAY(outer->centre, dim), EM_ARRAY(outer->precision, dim),
                           EM_ARRAY(outer->n_outer, n_local),
                           EM_ARRAY(outer->sum, n_local * em_draw_mass_size(dim)));
}

em_status em_outer_mass_copy(const em_outer_mass *from, int64_t n_local, int64_t dim,
                             em_outer_mass *out)
{
    *out = (em_outer_mass){from->exists, from->log_mass, from->radius};
    if (!from->exists)
        return EM_OK;
    const em_status status = allocate(out, n_local, dim);
    if (!status) {
        memcpy(out->centre, from->centre, (size_t)dim * sizeof *out->centre);
        memcpy(out->precision, from->precision, (size_t)dim * sizeof *out->precision);
    }
    return status;
}

/* ---------------------------------------------------------------- rays */

/* The radii of the points of a ray. In d dimensions the mass of a normal component is on a shell
 * whose log radius has a standard deviation of about 1 / sqrt(2 d). */
typedef struct radii {
    int n;
    double first, ratio;
} radii;

/* The first radius is random, so that the sum over the radii of density times volume is an unbiased
 * estimate. */
static radii choose_radii(int64_t dim, uint64_t seed)
{
    const em_stream stream = {seed, EM_ALL_CHAINS, first_ray, EM_RNG_INIT};
    const double step = fmin(0.4, 2 / sqrt(2 * (double)dim)),
                 n = ceil(log(farthest / nearest) / step);
    const int points = n < MOST_POINTS ? (int)n + 1 : MOST_POINTS;
    const double ratio = exp(log(farthest / nearest) / (points - 1));

    return (radii){points, nearest * sqrt((double)dim) * pow(ratio, em_uniform(&stream, 0)), ratio};
}

/* The log of the density times radius^dim at the points of a ray of chain c of this rank. */
static em_status follow_ray(em_posterior *posterior, const em_block *block, const em_outer_mass *o,
                            const em_stream *stream, const radii *at, double *work, double *profile)
{
    const int64_t dim = block->dim, chain = (int64_t)stream->chain;
    double *direction = work, *theta = work + block->stride, *gradient = theta + block->stride;
    double radius = at->first;
    em_status status = EM_OK;

    em_normals(stream, dim, direction);
    const double square = em_dot(dim, direction, direction);
    for (int k = 0; !status && k < at->n; k++, radius *= at->ratio) {
        double log_density = NAN;
        for (int64_t i = 0; i < dim; i++)
            theta[i] = o->centre[i] + radius * direction[i] / sqrt(square * o->precision[i]);
        status = em_evaluate_point(posterior, chain, dim, theta, gradient, &log_density);
        profile[k] = isnan(log_density) ? -INFINITY : log_density + (double)dim * log(radius);
    }
    return status;
}

/* Follows n_each rays of each chain; profile [n_local][n_each][points]. */
static em_status follow_rays(em_posterior *posterior, const em_block *block,
                             const em_outer_mass *outer, uint64_t seed, const radii *at,
                             int64_t n_each, double *gradients, double *profile)
{
    EM_SCOPED double *work = NULL;
    em_status status =
        em_posterior_share_failure(posterior, em_allocate(3 * block->stride, sizeof *work, &work));

    for (int64_t i = 0; !status && i < block->n_chain * n_each; i++) {
        const em_stream stream = {seed, (uint64_t)block->chain[i / n_each],
                                  first_ray + (uint64_t)(i % n_each), EM_RNG_INIT};
        status = follow_ray(posterior, block, outer, &stream, at, work, profile + i * at->n);
        gradients[i / n_each] += at->n;
    }
    return status;
}

/* The largest of n numbers at distances of `stride`. */
static double largest(const double *x, int64_t n, int64_t stride)
{
    double most = -INFINITY;

    for (int64_t i = 0; i < n; i++)
        most = fmax(most, x[i * stride]);
    return most;
}

/* The log of the mean of exp(x), n numbers at distances of `stride`. */
static double log_mean(const double *x, int64_t n, int64_t stride)
{
    const double most = largest(x, n, stride);
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i * stride] - most);
    return isfinite(most) ? most + log(sum / (double)n) : -INFINITY;
}

/* The point of the mean profile with the least mass between two larger ones; 0: none. */
static int valley(const double *mean, int n)
{
    double deepest = least_fall;
    int at = 0;

    for (int k = 1; k + 1 < n; k++) {
        const double inner = largest(mean, k, 1), outer = largest(mean + k + 1, n - k - 1, 1);
        const double depth = fmin(inner, outer) - mean[k];
        if (outer > inner - negligible && depth > deepest) {
            deepest = depth;
            at = k;
        }
    }
    return at;
}

/* Where the outer part begins, and its mass, from the profiles of n rays. */
static void measure(em_outer_mass *outer, int64_t dim, const radii *at, const double *profile,
                    int64_t n)
{
    double mean[MOST_POINTS];

    for (int k = 0; k < at->n; k++)
        mean[k] = log_mean(profile + k, n, at->n);
    const int first = valley(mean, at->n), n_outer = at->n - first;
    outer->exists = first > 0;
    if (!outer->exists)
        return;
    const double half = (double)dim / 2; /* the area of a unit sphere is 2 pi^half / Gamma(half) */
    outer->radius = at->first * pow(at->ratio, first);
    outer->log_mass = log_mean(mean + first, n_outer, 1) + log(n_outer * log(at->ratio)) + log(2) +
                      half * log(M_PI) - lgamma(half);
    for (int64_t i = 0; i < dim; i++)
        outer->log_mass -= log(outer->precision[i]) / 2;
}

em_status em_outer_mass_search(em_posterior *posterior, em_grid *grid, const em_block *block,
                               const double *variance, uint64_t seed, double *gradients,
                               em_outer_mass *out)
{
    const int64_t dim = block->dim, n_local = block->n_chain, n_chain = em_grid_n_chain(grid);
    const int64_t n_each = (LEAST_RAYS + n_chain - 1) / n_chain;
    const radii at = choose_radii(dim, seed);
    EM_SCOPED double *position = NULL, *own = NULL, *all = NULL;
    em_status status =
        em_allocate_all(EM_ARRAY(position, n_local * dim), EM_ARRAY(own, n_local * n_each * at.n),
                        EM_ARRAY(all, n_chain * n_each * at.n));

    status = em_agree(status ? status : allocate(out, n_local, dim));
    for (int64_t c = 0; !status && c < n_local; c++)
        memcpy(position + c * dim, block->theta + c * block->stride,
               (size_t)dim * sizeof *position);
    status = status ? status : em_grid_sum_chains(grid, dim, position, out->centre);
    for (int64_t i = 0; !status && i < dim; i++) {
        out->centre[i] /= (double)n_chain;
        out->precision[i] = 1 / variance[i];
    }
    if (!status)
        status = em_agree(follow_rays(posterior, block, out, seed, &at, n_each, gradients, own));
    status = status ? status : em_grid_gather_chains(grid, n_each * at.n, own, all);
    if (!status)
        measure(out, dim, &at, all, n_chain * n_each);
    if (!out->exists)
        em_outer_mass_release(out);
    return status;
}

/* ---------------------------------------------------------------- draws */

void em_outer_mass_count(em_outer_mass *outer, int64_t c, int64_t dim, const double *theta,
                         double log_density)
{
    double square = 0;

    for (int64_t i = 0; i < dim; i++) {
        const double d = theta[i] - outer->centre[i];
        square += d * d * outer->precision[i];
    }
    if (square >= outer->radius * outer->radius)
        outer->n_outer[c]++;
    else
        em_draw_mass_add(outer->sum + c * em_draw_mass_size(dim), dim, outer->centre, theta,
                         log_density);
}

em_status em_outer_mass_missed(const em_outer_mass *outer, em_grid *grid, int64_t dim,
                               double *log_ratio)
{
    double n_outer = 0, n_inner = 0, log_mass = 0;

    *log_ratio = NAN;
    if (!outer->exists)
        return EM_OK;
    em_status status = em_grid_sum_chains(grid, 1, outer->n_outer, &n_outer);
    status = status ? status : em_draw_mass_estimate(grid, dim, outer->sum, &n_inner, &log_mass);
    const double ratio = exp(outer->log_mass - log_mass);
    if (!status && outer->log_mass > log_mass + EM_MISSED_LOG_MASS_LIMIT &&
        n_outer <= least_share * ratio / (1 + ratio) * (n_outer + n_inner))
        *log_ratio = outer->log_mass - log_mass;
    return status;
}

/* ---------------------------------------------------------------- checkpoints */

em_status em_outer_mass_visit(em_outer_mass *outer, int64_t n_local, int64_t dim,
                              const em_visitor *visitor)
{
    double numbers[] = {outer->log_mass, outer->radius};
    em_status status = EM_OK;

    if (visitor->restores) {
        em_outer_mass_release(outer);
        status = em_agree(allocate(outer, n_local, dim));
        outer->exists = !status;
    }
    status = status ? status : visitor->shared(visitor->context, "outer_mass", 2, numbers);
    outer->log_mass = numbers[0];
    outer->radius = numbers[1];
    if (!status)
        status = visitor->shared(visitor->context, "outer_centre", dim, outer->centre);
    if (!status)
        status = visitor->shared(visitor->context, "outer_precision", dim, outer->precision);
    status = status ? status : visitor->chains(visitor->context, "outer_draws", 1, outer->n_outer);
    return status ? status
                  : visitor->chains(visitor->context, "inner_sums", em_draw_mass_size(dim),
                                    outer->sum);
}
