/* Common parts of stochastic gradient Nose-Poincare HMC (sgnphmc.c) and of its update equations
 * exactly as the paper prints them (sgnphmc_printed.c). */
#pragma once

#include "sampler/thermostat/nose_poincare.h"
#include "sampler/thermostat/thermostat.h"

typedef struct em_sgnphmc_options {
    em_stochastic_options stochastic;
    double diffusion, thermostat_mass, thermostat_diffusion;
    bool learn_thermostat_mass, paper;
} em_sgnphmc_options;

typedef struct em_sgnphmc_sampler {
    em_thermostat thermostat;
    const em_sgnphmc_options *options;
    double Q;
    em_nose_poincare *flow; /* of the printed equations; else NULL */
} em_sgnphmc_sampler;

/* Q of chain c. Local. */
static inline double em_sgnphmc_mass_of(const em_sgnphmc_sampler *s, const em_step_context *context,
                                        int64_t c)
{
    return context->thermostat_mass ? context->thermostat_mass[c] : s->Q;
}

/* The printed equations, `paper: true`: create s->flow, and run one iteration. Local, but
 * evaluations of the posterior are Collective over the ranks of a group of shards. Errors:
 * EM_EMEMORY; those of em_posterior_estimate. */
em_status em_sgnphmc_set_up_printed(em_sgnphmc_sampler *s, int64_t n_chain, int64_t dim);
em_status em_sgnphmc_step_printed(em_sgnphmc_sampler *s, const em_step_context *context,
                                  em_block *block);
