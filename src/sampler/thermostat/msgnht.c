/*
 * Multivariate stochastic gradient Nose-Hoover thermostat (EQUATIONS 10): one thermostat for every
 * direction of the whitened momentum r = L^-1 p, where M = L L^T. With the stochastic gradient g ~
 * grad log p = -grad U:
 *
 *     d theta = L^-T r dt
 *     d r     = L^-1 g dt - xi * r dt + N(0, 2 a I dt)
 *     d xi    = (r * r - 1) dt
 *
 * (products of vectors are element by element) leaves exp(-U) N(r; 0, I) N(xi; a, I) invariant;
 * minibatch noise of covariance V is absorbed where L^-1 V L^-T is diagonal, by means of xi of a +
 * eps/2 (L^-1 V L^-T)_ii. One inner step, by symmetric splitting (order 2):
 *
 *     A  theta <- theta + eps/2 L^-T r,  xi <- xi + eps/2 (r * r - 1)
 *     B  r <- exp(-xi eps/2) * r
 *     O  r <- r + eps L^-1 g(theta) + N(0, 2 a eps I)
 *     B, A
 *
 * or by Euler's method (order 1): r <- r + eps L^-1 g(theta) - eps xi * r + N(0, 2 a eps I), then A
 * with eps.
 */
#include "base/clones.h"
#include "base/memory.h"
#include "math/simd/vector.h"
#include "sampler/stochastic/coordinate_block.h"
#include "sampler/thermostat/thermostat.h"

#include <math.h>
#include <string.h>

typedef struct msgnht_options {
    em_stochastic_options stochastic;
    int integrator;
    double diffusion;
} msgnht_options;

static const em_field fields[] = {
    EM_STOCHASTIC_FIELDS("0.01"),
    EM_THERMOSTAT_INTEGRATOR_FIELD(msgnht_options),
    EM_REAL(msgnht_options, diffusion, .maximum = 1e9, .fallback = "1",
            .doc = "injected noise a, per unit of time; 0 only if minibatch noise is present in "
                   "every direction"),
    {0}};

/* xi ~ N(a, I) */
static void msgnht_draw(em_thermostat *self, const em_step_context *context, em_block *block,
                        int64_t c)
{
    const double diffusion = ((const msgnht_options *)self->base.options)->diffusion;
    const em_stream stream = em_chain_stream(context, block, c, EM_RNG_THERMOSTAT);
    double *xi = block->extra + c * block->n_extra;

    em_normals(&stream, block->dim, xi);
    for (int64_t i = 0; i < block->dim; i++)
        xi[i] += diffusion;
    memset(xi + block->dim, 0, (size_t)(block->n_extra - block->dim) * sizeof *xi);
}

EM_CLONES static double msgnht_sum(int64_t n, const double *x)
{
    const int64_t whole = n / EM_LANES * EM_LANES;
    double sum[EM_LANES] = {0}, rest = 0;

    for (int64_t i = 0; i < whole; i += EM_LANES)
        for (int64_t l = 0; l < EM_LANES; l++)
            sum[l] += x[i + l];
    for (int64_t i = whole; i < n; i++)
        rest += x[i];
    return em_add_lanes(sum) + rest;
}

/* The friction of a chain: the mean over directions. */
static double msgnht_friction(const em_block *block, int64_t c)
{
    return msgnht_sum(block->dim, block->extra + c * block->n_extra) / (double)block->dim;
}

static em_status msgnht_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    em_thermostat *self = (em_thermostat *)base;

    self->draw = msgnht_draw;
    self->friction = msgnht_friction;
    return em_thermostat_set_up(base, n_chain, dim);
}

/* ---- the step: within an iteration block->momentum is r ---- */

/* Returns the sum of r^2, in lanes. */
EM_CLONES static double msgnht_drift_row(int64_t n, double h, em_product v, const double *r,
                                         double *restrict theta, double *restrict xi)
{
    const int64_t whole = n / EM_LANES * EM_LANES;
    double sum[EM_LANES] = {0}, rest = 0;

    for (int64_t i = 0; i < whole; i += EM_LANES)
        for (int64_t l = 0; l < EM_LANES; l++) {
            const double square = r[i + l] * r[i + l];
            theta[i + l] += h * v.scale[i + l] * v.value[i + l];
            xi[i + l] += h * (square - 1);
            sum[l] += square;
        }
    for (int64_t i = whole; i < n; i++) {
        theta[i] += h * v.scale[i] * v.value[i];
        xi[i] += h * (r[i] * r[i] - 1);
        rest += r[i] * r[i];
    }
    return em_add_lanes(sum) + rest;
}

/* Makes step A for a fraction of eps. The last one of an inner step stores the sum of r^2. */
static void msgnht_drift(em_thermostat *s, const em_step_context *context, em_block *block,
                         double fraction, bool is_last)
{
    em_mass_map(context->mass, EM_MAP_UNWHITEN, block->n_chain, block->momentum, s->work);
    for (int64_t c = 0; c < block->n_chain; c++) {
        const int64_t row = c * block->stride;
        const double *r = block->momentum + row;
        const em_product v = em_mass_product(context->mass[c], EM_MAP_UNWHITEN, r, s->work + row);
        const double square = msgnht_drift_row(block->dim, fraction * context->step_size[c], v, r,
                                               block->theta + row, block->extra + row);
        if (is_last)
            s->product[c] += square;
    }
}

EM_CLONES static void msgnht_damp(int64_t n, double eps, const double *restrict xi,
                                  double *restrict out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = -xi[i] * eps / 2;
}

/* Makes the steps B O B with d = exp(-xi eps/2). */
EM_CLONES static void msgnht_kick_damped(int64_t n, double eps, double scale,
                                         const double *restrict d, const double *restrict g_scale,
                                         const double *restrict g, const double *restrict z,
                                         double *restrict r)
{
    for (int64_t i = 0; i < n; i++)
        r[i] = d[i] * (d[i] * r[i] + eps * g_scale[i] * g[i] + scale * z[i]);
}

/* Makes the steps B O B with separate factors. g is the whitened gradient. */
static void msgnht_kick_split(int64_t n, double eps, double a, const double *xi, em_product g,
                              const double *z, double *r)
{
    enum { TILE = 512 }; /* exponentials stay in the first cache */
    _Alignas(EM_ALIGNMENT) double damp[TILE];

    for (int64_t i = 0; i < n; i += TILE) {
        const int64_t count = n - i < TILE ? n - i : TILE;
        msgnht_damp(count, eps, xi + i, damp);
        em_exp_near_0(count, damp, damp);
        msgnht_kick_damped(count, eps, sqrt(2 * a * eps), damp, g.scale + i, g.value + i, z + i,
                           r + i);
    }
}

EM_CLONES static void msgnht_kick_euler(int64_t n, double eps, double a, const double *xi,
                                        em_product g, const double *z, double *restrict r)
{
    const double scale = sqrt(2 * a * eps);

    for (int64_t i = 0; i < n; i++)
        r[i] += eps * g.scale[i] * g.value[i] - eps * xi[i] * r[i] + scale * z[i];
}

static void msgnht_kick(em_thermostat *s, const em_step_context *context, em_block *block)
{
    const msgnht_options *options = s->base.options;
    const int64_t n = block->stride;

    em_mass_map(context->mass, EM_MAP_WHITEN, block->n_chain, block->gradient, s->work);
    for (int64_t c = 0; c < block->n_chain; c++) {
        const em_product g = em_mass_product(context->mass[c], EM_MAP_WHITEN,
                                             block->gradient + c * n, s->work + c * n);
        (options->integrator == EM_THERMOSTAT_EULER ? msgnht_kick_euler : msgnht_kick_split)(
            n, context->step_size[c], options->diffusion, block->extra + c * n, g,
            s->normals + c * n, block->momentum + c * n);
    }
}

EM_CLONES static void msgnht_turn_row(int64_t n, em_product out, double *p)
{
    for (int64_t i = 0; i < n; i++)
        p[i] = out.scale[i] * out.value[i];
}

/* r = L^-1 p, or p = L r (the map of the mass), in place. */
static void msgnht_turn(em_thermostat *s, const em_step_context *context, em_block *block,
                        em_map map)
{
    em_mass_map(context->mass, map, block->n_chain, block->momentum, s->work);
    for (int64_t c = 0, row = 0; c < block->n_chain; c++, row += block->stride) {
        double *p = block->momentum + row;
        msgnht_turn_row(block->stride, em_mass_product(context->mass[c], map, p, s->work + row), p);
    }
}

/* Makes the moves before the first gradient. */
static void msgnht_before(em_thermostat *s, const em_step_context *context, em_block *block,
                          int64_t k)
{
    const msgnht_options *options = s->base.options;

    (void)k;
    msgnht_turn(s, context, block, EM_MAP_WHITEN);
    if (options->integrator == EM_THERMOSTAT_SPLITTING)
        msgnht_drift(s, context, block, 0.5, false);
}

/* Makes the moves after each gradient, and the first half of A of the next step while positions are
 * in the cache. */
static void msgnht_after(em_thermostat *s, const em_step_context *context, em_block *block,
                         int64_t k)
{
    const msgnht_options *options = s->base.options;
    const bool splits = options->integrator == EM_THERMOSTAT_SPLITTING;

    em_stochastic_noise(s->options, context, block, k, s->normals);
    msgnht_kick(s, context, block);
    msgnht_drift(s, context, block, splits ? 0.5 : 1, true);
    if (k == s->options->leapfrog_steps - 1)
        msgnht_turn(s, context, block, EM_MAP_MOMENTUM);
    else if (splits)
        msgnht_drift(s, context, block, 0.5, false);
}

static em_status msgnht_iterate(em_sampler *base, const em_step_context *context, em_block *block,
                                int64_t chain)
{
    em_thermostat *s = (em_thermostat *)base;
    em_status status = EM_OK;

    (void)chain;
    em_thermostat_start(s, block);
    for (int64_t k = 0; !status && k < s->options->leapfrog_steps; k++) {
        if (k == 0)
            em_thermostat_move(s, context, block, k, msgnht_before);
        em_stochastic_expect_noise(s->options, context, block, k, s->normals);
        status = em_stochastic_gradient(s->options, context, block, k);
        em_set_moves_before(context, k == s->options->leapfrog_steps - 1);
        em_thermostat_move(s, context, block, k, msgnht_after);
    }
    if (!status)
        em_thermostat_end(s, context, block);
    return status;
}

static em_status msgnht_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    return em_stochastic_in_turns(((em_thermostat *)base)->options, base, context, block,
                                  em_is_elementwise(context, block), msgnht_iterate);
}

const em_sampler_ops em_msgnht = {
    .name = "msgnht",
    .doc = "stochastic gradient Nose-Hoover thermostat with one thermostat per direction",
    .source = "Ding et al. 2014; symmetric splitting (mSGNHT-S): Li et al. 2016, corrected",
    .size = sizeof(em_thermostat),
    .options_size = sizeof(msgnht_options),
    .fields = fields,
    EM_THERMOSTAT_OPS,
    .set_up = msgnht_set_up,
    .step = msgnht_step,
    .n_extra = em_stochastic_extra_row,
};
