/* The functions of the sampler gibbs. A satellite uses them to register the same sampler under
 * a second name. */
#pragma once

#include "sampler/kernel/sampler.h"

typedef struct em_gibbs_options {
    em_sampler_options common; /* required of all options; not used */
    int64_t sweeps;
} em_gibbs_options;

extern const em_field em_gibbs_fields[];
extern const em_stat em_gibbs_stats[];

/* em_sampler_ops.step. */
em_status em_gibbs_step(em_sampler *base, const em_step_context *context, em_block *block);

/* Initialisers of em_sampler_ops for this sampler, without name, doc and source. */
#define EM_GIBBS                                                                                   \
    .size = sizeof(em_sampler), .options_size = sizeof(em_gibbs_options),                          \
    .fields = em_gibbs_fields, .stats = em_gibbs_stats, .step = em_gibbs_step, .by_model = true
