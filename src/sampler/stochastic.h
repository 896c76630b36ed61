/*
 * What the kernels with stochastic gradients share: options, fresh minibatches, noise, and what
 * becomes of a chain that diverges. An iteration is `leapfrog_steps` inner steps. All Local, but
 * for the target, which may sum over shards.
 */
#ifndef EM_SAMPLER_STOCHASTIC_H
#define EM_SAMPLER_STOCHASTIC_H

#include "math/rng.h"
#include "sampler/sampler.h"

/* First member of the options of a stochastic kernel. */
typedef struct em_stochastic_options {
    em_sampler_options common;
    int64_t leapfrog_steps;
} em_stochastic_options;

/* The rows of those options; such kernels accept every move, so that nothing adapts the step. */
#define EM_STOCHASTIC_FIELDS(first_step)                                                           \
    EM_SAMPLER_FIELDS_FROM(first_step, "0.8"),                                                     \
        EM_INT(em_stochastic_options, leapfrog_steps, .minimum = 1, .maximum = 1e6,                \
               .fallback = "10", .doc = "inner steps of an iteration")

/*
 * The log density and its gradient for `n_chain` chains from `first` (counted within the block),
 * from a minibatch of their own each: evaluation number k of `per_iteration` in this iteration.
 * theta, log_density, gradient are the panels of those chains alone. Errors: EM_EMODEL.
 */
em_status em_stochastic_evaluate(const em_stochastic_options *options,
                                 const em_step_context *context, const em_block *block,
                                 int64_t per_iteration, int64_t k, int64_t first, int64_t n_chain,
                                 const double *theta, double *log_density, double *gradient);

/* z[n_chain][stride]: standard normals for all chains of the block or piece, padding zero; `number`
 * counts the panels of one purpose over the run. */
void em_stochastic_normals(const em_step_context *context, const em_block *block,
                           em_purpose purpose, int64_t number, double *z);

/* Scalar normal number `index` of chain c in this iteration, for thermostats. */
double em_stochastic_normal(const em_step_context *context, const em_block *block, int64_t c,
                            uint64_t index);

/* True while position, momentum, gradient and extra numbers of chain c are finite. */
bool em_chain_is_finite(const em_block *block, int64_t c);

/* Fills lp, step_size, n_steps and diverging, the statistics of a kernel without acceptance. */
extern const em_stat em_stochastic_stats[];
void em_stochastic_report(const em_stochastic_options *options, const em_step_context *context,
                          em_block *block, int64_t c, bool diverging);

#endif
