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

/* Functions of em_sampler_ops, which documents them. */
em_status em_gibbs_create(const void *options, int64_t n_chain, int64_t dim, em_sampler **out);
void em_gibbs_destroy(em_sampler *base);
em_status em_gibbs_step(em_sampler *base, const em_step_context *context, em_block *block);

/* Initialisers of em_sampler_ops for this sampler, without name, doc and source. */
#define EM_GIBBS                                                                                   \
    .options_size = sizeof(em_gibbs_options), .fields = em_gibbs_fields, .stats = em_gibbs_stats,  \
    .create = em_gibbs_create, .destroy = em_gibbs_destroy, .step = em_gibbs_step,                 \
    .by_model = true
