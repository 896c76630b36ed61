/*
 * Stochastic gradient Riemannian Nose-Poincare HMC, canonical form (EQUATIONS 12): the thermostat
 * of sampler/thermostat/sgnphmc.c with the model's metric G(theta) as its mass, in H of
 * sampler/riemannian/riemann.h. With p~ = p / s:
 *
 *     d theta = G^-1 p~ dt
 *     d p~    = -dH/dtheta dt - (q / Q) p~ dt + N(0, 2 a G dt)
 *     d q     = (p~^T G^-1 p~ - D) dt
 *
 * leaves exp(-U) N(p~; 0, G) N(q; a Q, Q) invariant. One inner step, of order 2:
 *
 *     q <- q + eps/2 (p~^T G^-1 p~ - D),  p~ <- exp(-q eps / (2 Q)) p~,  p~ <- p~ + N(0, a eps G)
 *     generalised leapfrog of step eps with the stochastic gradient, one per position
 *     p~ <- p~ + N(0, a eps G),  p~ <- exp(-q eps / (2 Q)) p~,  q <- q + eps/2 (p~^T G^-1 p~ - D)
 *
 * The metric is of all observations. A chain whose implicit equations have no solution is
 * diverging. The learned mass is not used; the momentum left in the block is p~.
 */
#include "base/memory.h"
#include "math/finite.h"
#include "sampler/riemannian/riemann.h"
#include "sampler/thermostat/thermostat.h"

#include <math.h>
#include <string.h>

typedef struct sgrnphmc_options {
    em_stochastic_options stochastic;
    double diffusion, thermostat_mass;
    em_riemann_options riemann;
} sgrnphmc_options;

static const em_field fields[] = {EM_STOCHASTIC_FIELDS("0.1"),
                                  EM_REAL(sgrnphmc_options, diffusion, .minimum = 0, .maximum = 1e9,
                                          .fallback = "1",
                                          .doc = "injected noise a, per unit of time"),
                                  EM_THERMOSTAT_MASS_FIELD(sgrnphmc_options, "Q"),
                                  EM_RIEMANN_FIELDS(sgrnphmc_options, riemann),
                                  {0}};

typedef struct sgrnphmc_sampler {
    em_sampler base;
    const sgrnphmc_options *options;
    double Q;
    em_riemann *riemann;
    double *normals; /* [stride] */
    double q;
} sgrnphmc_sampler;

static em_status sgrnphmc_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    (void)n_chain; /* chains move one after the other */
    sgrnphmc_sampler *s = (sgrnphmc_sampler *)base;
    const sgrnphmc_options *options = s->options = base->options;
    const int64_t stride = em_stride(dim);
    const em_status status = em_riemann_create(&base->memory, dim, &options->riemann, &s->riemann);

    s->Q = em_thermostat_mass_of(options->thermostat_mass, dim);
    return status ? status : em_own_all(&base->memory, EM_ARRAY(s->normals, stride));
}

static const double *sgrnphmc_normals(sgrnphmc_sampler *s, const em_step_context *context,
                                      const em_block *block, int64_t c, em_purpose purpose,
                                      int64_t number)
{
    const em_stream stream = {context->seed, (uint64_t)block->chain[c], (uint64_t)number, purpose};

    em_normals(&stream, block->dim, s->normals);
    return s->normals;
}

/* Draws p~ ~ N(0, G) and q ~ N(a Q, Q). If there is no metric, the chain will not move. */
static em_status sgrnphmc_draw(sgrnphmc_sampler *s, const em_step_context *context, em_block *block,
                               int64_t c)
{
    double *p = block->momentum + c * block->stride;
    em_status status = em_riemann_set_position(s->riemann, context->posterior, block->chain[c],
                                               block->theta + c * block->stride);

    memset(p, 0, (size_t)block->stride * sizeof *p);
    if (!status)
        em_riemann_add_noise(
            s->riemann, 1,
            sgrnphmc_normals(s, context, block, c, EM_RNG_MOMENTUM, context->iteration), p);
    block->extra[c] =
        s->options->diffusion * s->Q + sqrt(s->Q) * em_stochastic_normal(context, block, c, 0);
    return status < 0 ? status : EM_OK;
}

/* Does nothing after a new mass, because nothing here depends on the learned mass. */
static em_status sgrnphmc_refresh(em_sampler *base, const em_step_context *context, em_block *block)
{
    em_status status = EM_OK;

    for (int64_t c = 0; !status && context->iteration == 0 && c < block->n_chain; c++)
        status = sgrnphmc_draw((sgrnphmc_sampler *)base, context, block, c);
    return status;
}

/* q <- q + eps/2 (p~^T G^-1 p~ - D) */
static void sgrnphmc_drive(sgrnphmc_sampler *s, double eps)
{
    s->q += eps / 2 * (2 * em_riemann_kinetic(s->riemann) - (double)s->riemann->dim);
}

/* p~ <- exp(-q eps / (2 Q)) p~ */
static void sgrnphmc_damp(sgrnphmc_sampler *s, double eps)
{
    const double factor = exp(-s->q * eps / (2 * s->Q));

    for (int64_t i = 0; i < s->riemann->dim; i++)
        s->riemann->momentum[i] *= factor;
}

/* Makes a generalised leapfrog step with the minibatch of inner step k. */
static em_status sgrnphmc_leap(sgrnphmc_sampler *s, const em_step_context *context,
                               const em_block *block, int64_t c, int64_t k)
{
    const double eps = context->step_size[c];
    const em_stochastic_options *options = &s->options->stochastic;
    em_status status = em_riemann_advance(s->riemann, eps);

    if (!status)
        status = em_stochastic_evaluate(options, context, options->leapfrog_steps, k,
                                        em_riemann_query(s->riemann, block, c));
    return status ? status : em_riemann_finish(s->riemann, eps);
}

static em_status sgrnphmc_inner_step(sgrnphmc_sampler *s, const em_step_context *context,
                                     const em_block *block, int64_t c, int64_t k)
{
    const double eps = context->step_size[c], scale = sqrt(s->options->diffusion * eps);
    const int64_t number = 2 * em_stochastic_step_number(&s->options->stochastic, context, k);

    sgrnphmc_drive(s, eps);
    sgrnphmc_damp(s, eps);
    em_riemann_add_noise(s->riemann, scale,
                         sgrnphmc_normals(s, context, block, c, EM_RNG_NOISE, number),
                         s->riemann->momentum);
    em_status status = sgrnphmc_leap(s, context, block, c, k);
    em_riemann_add_noise(s->riemann, scale,
                         sgrnphmc_normals(s, context, block, c, EM_RNG_NOISE, number + 1),
                         s->riemann->momentum);
    sgrnphmc_damp(s, eps);
    sgrnphmc_drive(s, eps);
    return status;
}

static bool sgrnphmc_is_finite(const sgrnphmc_sampler *s)
{
    const int64_t n = s->riemann->dim;

    return em_all_finite(n, s->riemann->theta) && em_all_finite(n, s->riemann->momentum) &&
           em_all_finite(n, s->riemann->gradient) && isfinite(s->q);
}

/* Makes an iteration of one chain. If the chain diverges, it does not move. */
static em_status sgrnphmc_advance(sgrnphmc_sampler *s, const em_step_context *context,
                                  em_block *block, int64_t c)
{
    const em_stochastic_options *options = &s->options->stochastic;

    em_riemann_take_state(s->riemann, block, c);
    s->q = block->extra[c];
    em_status status =
        em_riemann_set_position(s->riemann, context->posterior, block->chain[c], s->riemann->theta);
    for (int64_t k = 0; !status && k < options->leapfrog_steps; k++)
        status = sgrnphmc_inner_step(s, context, block, c, k);
    if (status < 0)
        return status;
    const bool diverging = status || !sgrnphmc_is_finite(s);
    if (diverging)
        status = sgrnphmc_draw(s, context, block, c);
    else {
        em_riemann_put_state(s->riemann, block, c);
        block->extra[c] = s->q;
    }
    em_stochastic_report(options, context, block, c, diverging);
    block->stat[EM_STAT_THERMOSTAT][c] = block->extra[c] / s->Q;
    return status;
}

static em_status sgrnphmc_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    em_status status = EM_OK;

    for (int64_t c = 0; !status && c < block->n_chain; c++)
        status = sgrnphmc_advance((sgrnphmc_sampler *)base, context, block, c);
    return status;
}

const em_sampler_ops em_sgrnphmc = {
    .name = "sgrnphmc",
    .doc = "stochastic gradient Riemannian Nose-Poincare HMC, canonical form",
    .source = "Roychowdhury, Kulis, Parthasarathy 2016; derived in canonical form",
    .size = sizeof(sgrnphmc_sampler),
    .options_size = sizeof(sgrnphmc_options),
    .fields = fields,
    .stats = em_thermostat_stats,
    .set_up = sgrnphmc_set_up,
    .step = sgrnphmc_step,
    .metric = em_riemann_metric_of,
    .minibatches = true,
    .n_extra = em_thermostat_n_extra,
    .refresh = sgrnphmc_refresh,
};
