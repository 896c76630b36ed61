#include "sampler/langevin.h"

#include "base/memory.h"

#include <float.h>
#include <math.h>
#include <string.h>

em_status em_langevin_create(const em_sampler_ops *ops, const void *options, size_t size,
                             int64_t n_chain, int64_t dim, em_langevin **out)
{
    const int64_t panel = n_chain * em_stride(dim);
    em_langevin *s = NULL;
    em_status status = em_allocate(1, size, &s);

    *out = NULL;
    if (status)
        return status;
    status = em_allocate(5 * panel + 2 * n_chain, sizeof(double), &s->theta_before);
    if (!status)
        status = em_baths_create(n_chain, &s->baths);
    if (status) {
        em_langevin_destroy(&s->base);
        return status;
    }
    s->base.ops = ops;
    s->options = options;
    s->momentum_before = s->theta_before + panel;
    s->velocity = s->momentum_before + panel;
    s->noise = s->velocity + panel;
    s->normals = s->noise + panel;
    s->log_density_before = s->normals + panel;
    s->eps = s->log_density_before + n_chain;
    *out = s;
    return EM_OK;
}

void em_langevin_destroy(em_sampler *base)
{
    em_langevin *s = (em_langevin *)base;

    if (s) {
        em_release(&s->theta_before);
        em_baths_destroy(&s->baths);
    }
    em_release(&s);
}

double em_langevin_noise_share(const em_sampler *sampler)
{
    const em_langevin *s = (const em_langevin *)sampler;

    return em_bath_share(s->baths.bath, s->baths.n_chain, 0.5, s->eps);
}

void em_langevin_begin(em_langevin *s, const em_step_context *context, const em_block *block,
                       double scale)
{
    const size_t panel = (size_t)(block->n_chain * block->stride) * sizeof(double);

    memcpy(s->theta_before, block->theta, panel);
    memcpy(s->momentum_before, block->momentum, panel);
    for (int64_t c = 0; c < block->n_chain; c++) {
        s->log_density_before[c] = block->log_density[c];
        s->eps[c] = scale * context->step_size[c];
    }
}

/* Without an early exit, so that the loop is vectorised. */
static bool langevin_is_finite(int64_t n, const double *x)
{
    int64_t wrong = 0;

    for (int64_t i = 0; i < n; i++)
        wrong |= !(fabs(x[i]) <= DBL_MAX);
    return !wrong;
}

void em_langevin_end(em_langevin *s, const em_step_context *context, em_block *block)
{
    const size_t bytes = (size_t)block->stride * sizeof(double);

    for (int64_t c = 0; c < block->n_chain; c++) {
        const int64_t row = c * block->stride;
        const bool diverging =
            !langevin_is_finite(block->dim, block->theta + row) || !isfinite(block->log_density[c]);
        if (diverging) {
            memcpy(block->theta + row, s->theta_before + row, bytes);
            memcpy(block->momentum + row, s->momentum_before + row, bytes);
            block->log_density[c] = s->log_density_before[c];
        }
        em_stochastic_report(s->options, context, block, c, diverging);
        block->stat[EM_STAT_STEP_SIZE][c] = s->eps[c];
    }
}

void em_langevin_lose(em_block *block, int64_t c)
{
    block->theta[c * block->stride] = NAN;
}

em_status em_langevin_gradient(em_langevin *s, const em_step_context *context, em_block *block,
                               int64_t k)
{
    return em_stochastic_evaluate(s->options, context, block, s->options->leapfrog_steps, k, 0,
                                  block->n_chain, block->theta, block->log_density,
                                  block->gradient);
}

void em_langevin_normals(em_langevin *s, const em_step_context *context, const em_block *block,
                         int64_t k)
{
    em_stochastic_normals(context, block, EM_RNG_NOISE,
                          context->iteration * s->options->leapfrog_steps + k, s->normals);
}

void em_langevin_refresh(em_langevin *s, const em_step_context *context, em_block *block)
{
    em_stochastic_normals(context, block, EM_RNG_MOMENTUM, context->iteration, s->normals);
    em_mass_momentum(context->mass, block->n_chain, s->normals, block->momentum);
}

void em_langevin_add(const em_langevin *s, const em_block *block, double fraction,
                     const double *from, double *to)
{
    for (int64_t c = 0; c < block->n_chain; c++) {
        const double eps = fraction * s->eps[c];
        for (int64_t i = c * block->stride; i < (c + 1) * block->stride; i++)
            to[i] += eps * from[i];
    }
}

void em_langevin_drift(em_langevin *s, const em_step_context *context, em_block *block,
                       double fraction)
{
    em_mass_velocity(context->mass, block->n_chain, block->momentum, s->velocity);
    em_langevin_add(s, block, fraction, s->velocity, block->theta);
}
