#include "sampler/thermostat/nose_poincare.h"

#include "base/memory.h"
#include "math/finite.h"
#include "sampler/stochastic/stochastic.h"

#include <math.h>
#include <string.h>

const em_stat em_nose_poincare_stats[] = {
    EM_STAT_LP,           EM_STAT_STEP_SIZE, EM_STAT_N_STEPS,    EM_STAT_DIVERGING, EM_STAT_ENERGY,
    EM_STAT_ENERGY_ERROR, EM_STAT_INT_TIME,  EM_STAT_THERMOSTAT, EM_STAT_COUNT};

int64_t em_nose_poincare_n_extra(const void *options, int64_t dim)
{
    (void)options, (void)dim;
    return 2;
}

em_status em_nose_poincare_create(em_owner *owner, int64_t n_chain, int64_t dim, double Q,
                                  em_nose_poincare **out)
{
    const int64_t panel = n_chain * em_stride(dim), vector = em_stride(n_chain);
    em_status status = em_own_all(owner, EM_ARRAY(*out, 1));
    em_nose_poincare *f = *out;

    if (status)
        return status;
    *f = (em_nose_poincare){.n_chain = n_chain, .dim = dim, .stride = em_stride(dim)};
    status =
        em_own_all(owner, EM_ARRAY(f->theta, panel), EM_ARRAY(f->momentum, panel),
                   EM_ARRAY(f->gradient, panel), EM_ARRAY(f->velocity, panel),
                   EM_ARRAY(f->log_density, vector), EM_ARRAY(f->s, vector), EM_ARRAY(f->q, vector),
                   EM_ARRAY(f->h0, vector), EM_ARRAY(f->kinetic, vector), EM_ARRAY(f->Q, vector));
    for (int64_t c = 0; !status && c < n_chain; c++)
        f->Q[c] = Q;
    return status;
}

/* Computes W p and p^T W p / 2. */
static void nose_poincare_kinetic(em_nose_poincare *f, const em_step_context *context)
{
    em_mass_velocity(context->mass, f->n_chain, f->momentum, f->velocity);
    em_kinetic_energy(f->n_chain, f->dim, f->stride, f->momentum, f->velocity, f->kinetic);
}

void em_nose_poincare_start(em_nose_poincare *f, const em_step_context *context,
                            const em_block *block)
{
    const size_t panel = (size_t)(f->n_chain * f->stride) * sizeof(double);

    memcpy(f->theta, block->theta, panel);
    memcpy(f->gradient, block->gradient, panel);
    memcpy(f->log_density, block->log_density, (size_t)f->n_chain * sizeof(double));
    em_stochastic_normals(context, block, EM_RNG_MOMENTUM, context->iteration, f->velocity);
    em_mass_momentum(context->mass, f->n_chain, f->velocity, f->momentum);
    nose_poincare_kinetic(f, context);
    for (int64_t c = 0; c < f->n_chain; c++) {
        f->s[c] = 1;
        f->q[c] = sqrt(f->Q[c]) * em_stochastic_normal(context, block, c, 0);
        f->h0[c] = f->kinetic[c] + f->q[c] * f->q[c] / (2 * f->Q[c]) - f->log_density[c];
    }
}

/* The force on q without the terms in q: p^T W p / (2 s^2) - U - D (1 + ln s) + H_0 */
static double nose_poincare_force(const em_nose_poincare *f, int64_t c)
{
    const double s = f->s[c];

    return f->kinetic[c] / (s * s) + f->log_density[c] - (double)f->dim * (1 + log(s)) + f->h0[c];
}

/* p_1/2 = p + eps/2 (s g - b / sqrt(s) p_1/2) */
static void nose_poincare_first_kick(em_nose_poincare *f, const em_step_context *context)
{
    for (int64_t c = 0; c < f->n_chain; c++) {
        const double h = context->step_size[c] / 2, s = f->s[c];
        const double *g = f->gradient + c * f->stride;
        double *p = f->momentum + c * f->stride;
        for (int64_t i = 0; i < f->stride; i++)
            p[i] = (p[i] + h * s * g[i]) / (1 + h * f->friction / sqrt(s));
    }
}

/* q_1/2 = q + eps/2 (force - q_1/2^2 / (2 Q) - A s q_1/2 / Q): the root that is q at eps = 0, NaN
 * if there is none. */
static double nose_poincare_half_thermostat(const em_nose_poincare *f, double h, int64_t c)
{
    const double Q = f->Q[c];
    const double b = 1 + h * f->q_friction * f->s[c] / Q;
    const double minus_c = f->q[c] + h * nose_poincare_force(f, c);

    return 2 * minus_c / (b + sqrt(b * b + 2 * h * minus_c / Q));
}

em_query em_nose_poincare_query(const em_nose_poincare *flow, const int64_t *chain)
{
    return (em_query){.n_chain = flow->n_chain,
                      .stride = flow->stride,
                      .chain = chain,
                      .theta = flow->theta,
                      .log_density = flow->log_density,
                      .gradient = flow->gradient};
}

/* s' = s + eps/2 q_1/2 / Q (s + s'), NaN if it would not be positive; theta' = theta + eps/2 (1 / s
 * + 1 / s') W p_1/2 */
void em_nose_poincare_advance(em_nose_poincare *f, const em_step_context *context)
{
    nose_poincare_first_kick(f, context);
    nose_poincare_kinetic(f, context);
    for (int64_t c = 0; c < f->n_chain; c++) {
        const double h = context->step_size[c] / 2, before = f->s[c];
        const double *v = f->velocity + c * f->stride;
        double *theta = f->theta + c * f->stride;
        f->q[c] = nose_poincare_half_thermostat(f, h, c);
        const double ratio = h * f->q[c] / f->Q[c];
        f->s[c] = fabs(ratio) < 1 ? before * (1 + ratio) / (1 - ratio) : NAN;
        for (int64_t i = 0; i < f->dim; i++)
            theta[i] += h * (1 / before + 1 / f->s[c]) * v[i];
    }
}

/* q' = q_1/2 + eps/2 (force' - q_1/2^2 / (2 Q) - A s' q_1/2 / Q), p' = p_1/2 + eps/2 (s' g' - b /
 * sqrt(s') p_1/2) */
void em_nose_poincare_finish(em_nose_poincare *f, const em_step_context *context)
{
    for (int64_t c = 0; c < f->n_chain; c++) {
        const double h = context->step_size[c] / 2, s = f->s[c], q = f->q[c], Q = f->Q[c];
        const double *g = f->gradient + c * f->stride;
        double *p = f->momentum + c * f->stride;
        f->q[c] += h * (nose_poincare_force(f, c) - q * q / (2 * Q) - f->q_friction * s * q / Q);
        for (int64_t i = 0; i < f->stride; i++)
            p[i] += h * (s * g[i] - f->friction / sqrt(s) * p[i]);
    }
}

void em_nose_poincare_energy(em_nose_poincare *f, const em_step_context *context, double *energy)
{
    nose_poincare_kinetic(f, context);
    for (int64_t c = 0; c < f->n_chain; c++) {
        const double s = f->s[c], q = f->q[c], Q = f->Q[c];
        energy[c] = s * (f->kinetic[c] / (s * s) - f->log_density[c] + q * q / (2 * Q) +
                         (double)f->dim * log(s) - f->h0[c]);
    }
}

static void nose_poincare_store_state(const em_nose_poincare *f, em_block *block, int64_t c)
{
    const int64_t row = c * f->stride;
    const size_t bytes = (size_t)f->stride * sizeof(double);

    memcpy(block->theta + row, f->theta + row, bytes);
    memcpy(block->gradient + row, f->gradient + row, bytes);
    for (int64_t i = row; i < row + f->stride; i++)
        block->momentum[i] = f->momentum[i] / f->s[c];
    block->log_density[c] = f->log_density[c];
    block->extra[c * block->n_extra] = f->s[c];
    block->extra[c * block->n_extra + 1] = f->q[c] / f->Q[c];
}

static bool nose_poincare_is_finite(const em_nose_poincare *f, int64_t c)
{
    const int64_t row = c * f->stride;

    return em_all_finite(f->dim, f->theta + row) && em_all_finite(f->dim, f->momentum + row) &&
           em_all_finite(f->dim, f->gradient + row) && isfinite(f->q[c]) &&
           isfinite(f->log_density[c]);
}

void em_nose_poincare_store(em_nose_poincare *f, const em_step_context *context, int64_t n_step,
                            em_block *block)
{
    double *const *stat = block->stat;

    em_nose_poincare_energy(f, context, stat[EM_STAT_ENERGY_ERROR]);
    for (int64_t c = 0; c < f->n_chain; c++) {
        const bool diverging = !nose_poincare_is_finite(f, c);
        if (!diverging)
            nose_poincare_store_state(f, block, c);
        em_block_record_steps(block, c, context->step_size[c], (double)n_step);
        stat[EM_STAT_DIVERGING][c] = diverging;
        stat[EM_STAT_ENERGY][c] = f->h0[c];
        stat[EM_STAT_THERMOSTAT][c] = block->extra[c * block->n_extra + 1];
        if (diverging)
            stat[EM_STAT_ENERGY_ERROR][c] = INFINITY;
    }
}
