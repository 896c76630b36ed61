/*
 * Stochastic gradient Nose-Hoover thermostat with a mass (EQUATIONS 9, form F1). With the
 * stochastic gradient g ~ grad log p = -grad U, W = M^-1 and a thermostat xi of mass mu:
 *
 *     d theta = W p dt
 *     dp      = g dt - xi p dt + N(0, 2 a M dt)
 *     d xi    = (p^T W p - D) dt / mu
 *
 * leaves exp(-U) N(p; 0, M) N(xi; a, 1 / mu) invariant; minibatch noise V = v M is absorbed, by a
 * mean of xi of a + eps v / 2. One inner step, by symmetric splitting (order 2 where V is
 * proportional to M):
 *
 *     A  theta <- theta + eps/2 W p,  xi <- xi + eps/2 (p^T W p - D) / mu
 *     B  p <- exp(-xi eps/2) p
 *     O  p <- p + eps g(theta) + N(0, 2 a eps M)
 *     B, A
 *
 * or by Euler's method (order 1): p <- p + eps g - eps xi p + N(0, 2 a eps M), then A with eps. The
 * printed form is in sgnht_printed.c.
 */
#include "sampler/thermostat/sgnht.h"

#include "base/clones.h"

#include <math.h>

static const em_field fields[] = {
    EM_STOCHASTIC_FIELDS("0.01"),
    EM_THERMOSTAT_INTEGRATOR_FIELD(em_sgnht_options),
    EM_REAL(em_sgnht_options, diffusion, .maximum = 1e9, .fallback = "1",
            .doc = "injected noise a, per unit of time"),
    EM_THERMOSTAT_MASS_FIELD(em_sgnht_options, "mu"),
    EM_BOOL(
        em_sgnht_options, paper, .fallback = "false",
        .doc =
            "Euler with the printed friction xi W p and noise 2 a I: unless the mass is a multiple "
            "of the identity, biased at any step size (in two dimensions the covariance is off by "
            "20 % at 0.1, 16 % at 0.05, where the default is off by less than 1 %)"),
    {0}};

/* xi ~ N(a, 1 / mu) */
static void sgnht_draw(em_thermostat *self, const em_step_context *context, em_block *block,
                       int64_t c)
{
    const em_sgnht_sampler *s = (const em_sgnht_sampler *)self;

    block->extra[c] =
        s->options->diffusion + em_stochastic_normal(context, block, c, 0) / sqrt(s->mu);
}

static double sgnht_friction(const em_block *block, int64_t c)
{
    return block->extra[c];
}

static em_status sgnht_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    em_sgnht_sampler *s = (em_sgnht_sampler *)base;
    const em_sgnht_options *options = s->options = base->options;

    s->thermostat.draw = sgnht_draw;
    s->thermostat.friction = sgnht_friction;
    s->mu = em_thermostat_mass_of(options->thermostat_mass, dim);
    return em_thermostat_set_up(base, n_chain, dim);
}

EM_CLONES static void sgnht_kick_euler(int64_t n, double eps, double a, double xi, const double *g,
                                       em_product noise, double *restrict p)
{
    const double scale = sqrt(2 * a * eps);

    for (int64_t i = 0; i < n; i++)
        p[i] += eps * g[i] - eps * xi * p[i] + scale * noise.scale[i] * noise.value[i];
}

static void sgnht_kick(em_thermostat *t, const em_step_context *context, em_block *block)
{
    const em_sgnht_options *options = (const em_sgnht_options *)t->options;
    const int64_t n = block->stride;

    em_mass_map(context->mass, EM_MAP_MOMENTUM, block->n_chain, t->normals, t->work);
    for (int64_t c = 0; c < block->n_chain; c++) {
        const double eps = context->step_size[c], xi = block->extra[c], a = options->diffusion;
        const double *g = block->gradient + c * n, *z = t->normals + c * n, *work = t->work + c * n;
        const em_product noise = em_mass_product(context->mass[c], EM_MAP_MOMENTUM, z, work);
        double *p = block->momentum + c * n;
        if (options->integrator == EM_THERMOSTAT_EULER)
            sgnht_kick_euler(n, eps, a, xi, g, noise, p);
        else
            em_thermostat_kick(n, eps, a, xi, xi, g, noise, p);
    }
}

static void sgnht_before(em_thermostat *t, const em_step_context *context, em_block *block,
                         int64_t k)
{
    (void)k;
    em_thermostat_add_drift(t, context, block, 0.5);
}

static void sgnht_after(em_thermostat *t, const em_step_context *context, em_block *block,
                        int64_t k)
{
    const em_sgnht_options *options = (const em_sgnht_options *)t->options;

    em_stochastic_noise(t->options, context, block, k, t->normals);
    sgnht_kick(t, context, block);
    em_thermostat_add_drift(t, context, block,
                            options->integrator == EM_THERMOSTAT_SPLITTING ? 0.5 : 1);
}

static em_status sgnht_iterate(em_sampler *base, const em_step_context *context, em_block *block,
                               int64_t chain)
{
    em_sgnht_sampler *s = (em_sgnht_sampler *)base;
    em_thermostat *t = &s->thermostat;
    const bool splits = s->options->integrator == EM_THERMOSTAT_SPLITTING;
    em_status status = EM_OK;

    (void)chain;
    if (s->options->paper)
        return em_sgnht_step_printed(base, context, block);
    em_thermostat_start(t, block);
    for (int64_t k = 0; !status && k < t->options->leapfrog_steps; k++) {
        if (splits) {
            em_thermostat_move(t, context, block, k, sgnht_before);
            em_sgnht_turn(s, context, block, 0.5, t->product);
        }
        status = em_stochastic_gradient(t->options, context, block, k);
        em_thermostat_move(t, context, block, k, sgnht_after);
        em_sgnht_turn(s, context, block, splits ? 0.5 : 1, t->product);
    }
    if (!status)
        em_thermostat_end(t, context, block);
    return status;
}

static em_status sgnht_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    return em_stochastic_in_turns(((em_thermostat *)base)->options, base, context, block, false,
                                  sgnht_iterate);
}

const em_sampler_ops em_sgnht = {
    .name = "sgnht",
    .doc = "stochastic gradient Nose-Hoover thermostat with a mass",
    .source = "Ding et al. 2014; SGNHT-EM: Roychowdhury & Parthasarathy 2017, Alg. 2, corrected",
    .size = sizeof(em_sgnht_sampler),
    .options_size = sizeof(em_sgnht_options),
    .fields = fields,
    EM_THERMOSTAT_OPS,
    .set_up = sgnht_set_up,
    .step = sgnht_step,
    .n_extra = em_thermostat_n_extra,
};
