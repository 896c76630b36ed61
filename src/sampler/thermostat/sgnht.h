/* Common parts of the stochastic gradient Nose-Hoover thermostat (sgnht.c) and of its update
 * equations exactly as the paper prints them (sgnht_printed.c). */
#pragma once

#include "sampler/thermostat/thermostat.h"

typedef struct em_sgnht_options {
    em_stochastic_options stochastic;
    int integrator;
    double diffusion, thermostat_mass;
    bool paper;
} em_sgnht_options;

typedef struct em_sgnht_sampler {
    em_thermostat thermostat;
    const em_sgnht_options *options;
    double mu;
} em_sgnht_sampler;

/* Advances xi by `fraction` of the step size (operator A of sgnht.c); pWp [n_chain] is p^T W p.
 * Local. */
static inline void em_sgnht_turn(const em_sgnht_sampler *s, const em_step_context *context,
                                 em_block *block, double fraction, const double *pWp)
{
    for (int64_t c = 0; c < block->n_chain; c++)
        block->extra[c] += fraction * context->step_size[c] * (pWp[c] - (double)block->dim) / s->mu;
}

/* em_sampler_ops.step of `paper: true`. */
em_status em_sgnht_step_printed(em_sampler *base, const em_step_context *context, em_block *block);
