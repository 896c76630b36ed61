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
#include "base/memory.h"
#include "math/vector.h"
#include "sampler/thermostat.h"

#include <math.h>
#include <string.h>

extern const em_sampler_ops em_msgnht;

enum integrator { EULER, SPLITTING };
static const char *const integrators[] = {"euler", "splitting", NULL};

typedef struct msgnht_options {
    em_stochastic_options stochastic;
    int integrator;
    double diffusion;
} msgnht_options;

static const em_field fields[] = {
    EM_STOCHASTIC_FIELDS("0.01"),
    EM_CHOICE(msgnht_options, integrator, .fallback = "splitting", .choices = integrators,
              .doc = "splitting (order 2) or euler (order 1)"),
    EM_REAL(msgnht_options, diffusion, .maximum = 1e9, .fallback = "1",
            .doc = "injected noise a, per unit of time; 0 only where minibatch noise is in every "
                   "direction"),
    {0}};

typedef struct msgnht_sampler {
    em_thermostat thermostat;
    const msgnht_options *options;
    double *r; /* [n_chain][stride] */
} msgnht_sampler;

/* Rows of xi are padded with zeros, so that they line up with the panels. */
static int64_t msgnht_n_extra(const void *options, int64_t dim)
{
    (void)options;
    return em_stride(dim);
}

/* xi ~ N(a, I) */
static void msgnht_draw(em_thermostat *self, const em_step_context *context, em_block *block,
                        int64_t c)
{
    const msgnht_sampler *s = (const msgnht_sampler *)self;
    const em_stream stream = {context->seed, (uint64_t)block->chain[c],
                              (uint64_t)context->iteration, EM_RNG_THERMOSTAT};
    double *xi = block->extra + c * block->n_extra;

    em_normals(&stream, block->dim, xi);
    for (int64_t i = 0; i < block->dim; i++)
        xi[i] += s->options->diffusion;
    memset(xi + block->dim, 0, (size_t)(block->n_extra - block->dim) * sizeof *xi);
}

/* The mean over directions. */
static double msgnht_friction(const em_block *block, int64_t c)
{
    const double *xi = block->extra + c * block->n_extra;
    double sum = 0;

    for (int64_t i = 0; i < block->dim; i++)
        sum += xi[i];
    return sum / (double)block->dim;
}

static void msgnht_destroy(em_sampler *base)
{
    if (base)
        em_release(&((msgnht_sampler *)base)->r);
    em_thermostat_destroy(base);
}

static em_status msgnht_create(const void *options, int64_t n_chain, int64_t dim, em_sampler **out)
{
    em_thermostat *self = NULL;
    em_status status =
        em_thermostat_create(&em_msgnht, options, sizeof(msgnht_sampler), n_chain, dim, &self);
    msgnht_sampler *s = (msgnht_sampler *)self;

    *out = NULL;
    if (!status)
        status = em_allocate(n_chain * em_stride(dim), sizeof(double), &s->r);
    if (status) {
        msgnht_destroy((em_sampler *)s);
        return status;
    }
    self->draw = msgnht_draw;
    self->friction = msgnht_friction;
    s->options = options;
    *out = &self->base;
    return EM_OK;
}

/* A, for a fraction of eps */
static void msgnht_drift(msgnht_sampler *s, const em_step_context *context, em_block *block,
                         double fraction)
{
    em_mass_map(context->mass, EM_MAP_UNWHITEN, block->n_chain, s->r, s->thermostat.work);
    for (int64_t c = 0; c < block->n_chain; c++) {
        const double h = fraction * context->step_size[c];
        const double *r = s->r + c * block->stride;
        const em_product v = em_mass_product(context->mass[c], EM_MAP_UNWHITEN, r,
                                             s->thermostat.work + c * block->stride);
        double *restrict theta = block->theta + c * block->stride;
        double *restrict xi = block->extra + c * block->n_extra;
        for (int64_t i = 0; i < block->dim; i++) {
            theta[i] += h * v.scale[i] * v.value[i];
            xi[i] += h * (r[i] * r[i] - 1);
        }
    }
}

/* B O B; g is the whitened gradient. */
static void msgnht_kick_split(int64_t n, double eps, double a, const double *xi, em_product g,
                              const double *z, double *restrict r)
{
    enum { TILE = 512 }; /* exponentials stay in the first cache */
    const double scale = sqrt(2 * a * eps);
    _Alignas(EM_ALIGNMENT) double damp[TILE];

    for (int64_t first = 0; first < n; first += TILE) {
        const int64_t last = first + TILE < n ? first + TILE : n;
        for (int64_t i = first; i < last; i++)
            damp[i - first] = -xi[i] * eps / 2;
        em_exp(last - first, damp, damp);
        for (int64_t i = first; i < last; i++) {
            const double d = damp[i - first];
            r[i] = d * (d * r[i] + eps * g.scale[i] * g.value[i] + scale * z[i]);
        }
    }
}

static void msgnht_kick_euler(int64_t n, double eps, double a, const double *xi, em_product g,
                              const double *z, double *restrict r)
{
    const double scale = sqrt(2 * a * eps);

    for (int64_t i = 0; i < n; i++)
        r[i] += eps * g.scale[i] * g.value[i] - eps * xi[i] * r[i] + scale * z[i];
}

static void msgnht_kick(msgnht_sampler *s, const em_step_context *context, em_block *block)
{
    em_thermostat *t = &s->thermostat;
    const int64_t n = block->stride;

    em_mass_map(context->mass, EM_MAP_WHITEN, block->n_chain, block->gradient, t->work);
    for (int64_t c = 0; c < block->n_chain; c++) {
        const em_product g = em_mass_product(context->mass[c], EM_MAP_WHITEN,
                                             block->gradient + c * n, t->work + c * n);
        (s->options->integrator == EULER ? msgnht_kick_euler : msgnht_kick_split)(
            n, context->step_size[c], s->options->diffusion, block->extra + c * n, g,
            t->normals + c * n, s->r + c * n);
    }
}

/* sum r^2 */
static void msgnht_take_temperature(msgnht_sampler *s, const em_block *block)
{
    for (int64_t c = 0; c < block->n_chain; c++) {
        s->thermostat.product[c] = 0;
        for (int64_t i = c * block->stride; i < c * block->stride + block->dim; i++)
            s->thermostat.product[c] += s->r[i] * s->r[i];
    }
}

static void msgnht_whiten(msgnht_sampler *s, const em_step_context *context, const em_block *block)
{
    em_mass_map(context->mass, EM_MAP_WHITEN, block->n_chain, block->momentum, s->thermostat.work);
    for (int64_t c = 0; c < block->n_chain; c++) {
        const int64_t row = c * block->stride;
        const em_product r = em_mass_product(context->mass[c], EM_MAP_WHITEN, block->momentum + row,
                                             s->thermostat.work + row);
        for (int64_t i = 0; i < block->stride; i++)
            s->r[row + i] = r.scale[i] * r.value[i];
    }
}

static em_status msgnht_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    msgnht_sampler *s = (msgnht_sampler *)base;
    const bool splits = s->options->integrator == SPLITTING;
    em_status status = EM_OK;

    em_thermostat_begin(&s->thermostat, block);
    msgnht_whiten(s, context, block);
    for (int64_t k = 0; !status && k < s->thermostat.options->leapfrog_steps; k++) {
        if (splits)
            msgnht_drift(s, context, block, 0.5);
        em_thermostat_normals(&s->thermostat, context, block, k);
        status = em_thermostat_gradient(&s->thermostat, context, block, k);
        msgnht_kick(s, context, block);
        msgnht_drift(s, context, block, splits ? 0.5 : 1);
    }
    em_mass_momentum(context->mass, block->n_chain, s->r, block->momentum);
    msgnht_take_temperature(s, block);
    if (!status)
        em_thermostat_end(&s->thermostat, context, block);
    return status;
}

const em_sampler_ops em_msgnht = {
    .name = "msgnht",
    .doc = "stochastic gradient Nose-Hoover thermostat with one thermostat per direction",
    .source = "Ding et al. 2014; symmetric splitting (mSGNHT-S): Li et al. 2016, corrected",
    .options_size = sizeof(msgnht_options),
    .fields = fields,
    .stats = em_thermostat_stats,
    .create = msgnht_create,
    .destroy = msgnht_destroy,
    .step = msgnht_step,
    .minibatches = true,
    .n_extra = msgnht_n_extra,
    .refresh = em_thermostat_refresh,
};
