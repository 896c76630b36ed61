/*
 * Stochastic gradient Nose-Poincare HMC (EQUATIONS 11, canonical form). On the shell H = 0 the
 * Nose-Poincare flow is a Nose-Hoover thermostat in p~ = p / s; with the stochastic gradient g ~
 * grad log p = -grad U and W = M^-1:
 *
 *     d theta = W p~ dt
 *     d p~    = g dt - (q / Q) p~ dt + N(0, 2 a M dt)
 *     d q     = (p~^T W p~ - D) dt - A (q - a Q) / Q dt + N(0, 2 A dt)
 *     d ln s  = (q / Q) dt,
 *
 * leaves exp(-U) N(p~; 0, M) N(q; a Q, Q) invariant, and absorbs minibatch noise V = v M where A =
 * 0. Of q it keeps the friction q / Q, which does not change when Q is learned. One inner step, by
 * symmetric splitting:
 *
 *     theta <- theta + eps/2 W p~,  q <- q + eps/2 (p~^T W p~ - D),  ln s <- ln s + eps/2 q / Q
 *     p~ <- exp(-q eps / (2 Q)) p~
 *     p~ <- p~ + eps g(theta) + N(0, 2 a eps M);  q towards a Q, by its exact law where A > 0
 *     p~ <- exp(-q eps / (2 Q)) p~
 *     q, ln s and theta as in the first line
 *
 * The printed form is in sgnphmc_printed.c.
 */
#include "sampler/thermostat/sgnphmc.h"

#include <math.h>

static const em_field fields[] = {
    EM_STOCHASTIC_FIELDS("0.01"),
    EM_REAL(
        em_sgnphmc_options, diffusion, .maximum = 1e9, .fallback = "1",
        .doc =
            "injected noise a, per unit of time; paper: the friction b, eps/2 v for noise V = v M"),
    EM_THERMOSTAT_MASS_FIELD(em_sgnphmc_options, "Q"),
    EM_BOOL(em_sgnphmc_options, learn_thermostat_mass, .fallback = "false",
            .doc = "M-steps set Q to the variance of q; in theory this is Q already"),
    EM_REAL(em_sgnphmc_options, thermostat_diffusion, .maximum = 1e9, .fallback = "0",
            .doc = "noise A of the thermostat; above 0 it no longer absorbs minibatch noise"),
    EM_BOOL(em_sgnphmc_options, paper, .fallback = "false",
            .doc = "the equations as printed, whose noise moves the state off the energy shell on "
                   "which theta has the posterior: at step size 0.1 and V = 2 M the covariance of "
                   "theta is off by 6 %, that of p by 22 % (else below 1 %)"),
    {0}};

enum { LN_S, FRICTION, N_EXTRA }; /* extra numbers of a chain; paper: s itself */

static double sgnphmc_thermostat_mass(const void *untyped, int64_t dim)
{
    const em_sgnphmc_options *options = untyped;

    return options->learn_thermostat_mass ? em_thermostat_mass_of(options->thermostat_mass, dim)
                                          : NAN;
}

/* Draws q / Q ~ N(a, 1 / Q) and sets s = 1. */
static void sgnphmc_draw(em_thermostat *self, const em_step_context *context, em_block *block,
                         int64_t c)
{
    const em_sgnphmc_sampler *s = (const em_sgnphmc_sampler *)self;
    double *extra = block->extra + c * N_EXTRA;

    extra[LN_S] = 0;
    extra[FRICTION] = s->options->diffusion + em_stochastic_normal(context, block, c, 0) /
                                                  sqrt(em_sgnphmc_mass_of(s, context, c));
}

static double sgnphmc_friction(const em_block *block, int64_t c)
{
    return block->extra[c * N_EXTRA + FRICTION];
}

static em_status sgnphmc_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    em_sgnphmc_sampler *s = (em_sgnphmc_sampler *)base;
    const em_status status = em_thermostat_set_up(base, n_chain, dim);

    s->options = base->options;
    s->Q = em_thermostat_mass_of(s->options->thermostat_mass, dim);
    s->thermostat.draw = sgnphmc_draw;
    s->thermostat.friction = sgnphmc_friction;
    return status || !s->options->paper ? status : em_sgnphmc_set_up_printed(s, n_chain, dim);
}

/* Moves theta, q / Q and ln s by half a step. */
static void sgnphmc_drift(em_sgnphmc_sampler *s, const em_step_context *context, em_block *block)
{
    const double *pWp = em_thermostat_drift(&s->thermostat, context, block, 0.5);

    for (int64_t c = 0; c < block->n_chain; c++) {
        const double h = context->step_size[c] / 2;
        double *extra = block->extra + c * N_EXTRA;
        extra[FRICTION] += h * (pWp[c] - (double)block->dim) / em_sgnphmc_mass_of(s, context, c);
        extra[LN_S] += h * extra[FRICTION];
    }
}

/* xi - a <- exp(-A eps / Q) (xi - a) + N(0, (1 - exp(-2 A eps / Q)) / Q), where xi = q / Q */
static double sgnphmc_diffuse(const em_sgnphmc_options *options, double eps, double Q, double xi,
                              double z)
{
    const double a = options->diffusion, rate = options->thermostat_diffusion * eps / Q;

    return a + exp(-rate) * (xi - a) + sqrt(-expm1(-2 * rate) / Q) * z;
}

static void sgnphmc_kicks(em_sgnphmc_sampler *s, const em_step_context *context, em_block *block,
                          int64_t k)
{
    em_thermostat *t = &s->thermostat;
    const int64_t n = block->stride;

    em_mass_map(context->mass, EM_MAP_MOMENTUM, block->n_chain, t->normals, t->work);
    for (int64_t c = 0; c < block->n_chain; c++) {
        const double eps = context->step_size[c];
        const em_product noise =
            em_mass_product(context->mass[c], EM_MAP_MOMENTUM, t->normals + c * n, t->work + c * n);
        double *xi = &block->extra[c * N_EXTRA + FRICTION];
        const double before = *xi;
        if (s->options->thermostat_diffusion > 0)
            *xi = sgnphmc_diffuse(s->options, eps, em_sgnphmc_mass_of(s, context, c), *xi,
                                  em_stochastic_normal(context, block, c, (uint64_t)k + 1));
        em_thermostat_kick(n, eps, s->options->diffusion, before, *xi, block->gradient + c * n,
                           noise, block->momentum + c * n);
    }
}

static em_status sgnphmc_step_canonical(em_sgnphmc_sampler *s, const em_step_context *context,
                                        em_block *block)
{
    em_thermostat *t = &s->thermostat;
    em_status status = EM_OK;

    em_thermostat_begin(t, block);
    for (int64_t k = 0; !status && k < t->options->leapfrog_steps; k++) {
        sgnphmc_drift(s, context, block);
        em_stochastic_noise(t->options, context, block, k, t->normals);
        status = em_stochastic_gradient(t->options, context, block, k);
        sgnphmc_kicks(s, context, block, k);
        sgnphmc_drift(s, context, block);
    }
    if (!status)
        em_thermostat_end(t, context, block);
    return status;
}

static em_status sgnphmc_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    em_sgnphmc_sampler *s = (em_sgnphmc_sampler *)base;

    return s->options->paper ? em_sgnphmc_step_printed(s, context, block)
                             : sgnphmc_step_canonical(s, context, block);
}

static double sgnphmc_thermostat(const em_step_context *context, const em_block *block, int64_t c)
{
    return context->thermostat_mass[c] * sgnphmc_friction(block, c);
}

const em_sampler_ops em_sgnphmc = {
    .name = "sgnphmc",
    .doc = "stochastic gradient Nose-Poincare HMC, canonical form",
    .source = "Roychowdhury & Parthasarathy 2017, Alg. 5, corrected",
    .size = sizeof(em_sgnphmc_sampler),
    .options_size = sizeof(em_sgnphmc_options),
    .fields = fields,
    EM_THERMOSTAT_OPS,
    .set_up = sgnphmc_set_up,
    .step = sgnphmc_step,
    .n_extra = em_nose_poincare_n_extra,
    .thermostat_mass = sgnphmc_thermostat_mass,
    .thermostat = sgnphmc_thermostat,
};
