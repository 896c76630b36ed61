/*
 * Common parts of the kernels with stochastic gradients: options, minibatches, noise, and the
 * treatment of a chain that diverges. An iteration is `leapfrog_steps` inner steps. All Local, but
 * evaluations of the posterior are Collective over the ranks of a group of shards.
 */
#pragma once

#include "math/rng.h"
#include "sampler/kernel/sampler.h"

/* First member of the options of a kernel that uses minibatches. */
typedef struct em_stochastic_options {
    em_sampler_options common;
    int64_t leapfrog_steps;
    int minibatch_order; /* EM_MINIBATCH_DRAWN or EM_MINIBATCH_EPOCH */
    em_reals halve_at;
    double decay_power, decay_scale;
} em_stochastic_options;

enum { EM_MINIBATCH_DRAWN, EM_MINIBATCH_EPOCH };
extern const char *const em_minibatch_orders[];

/* The rows of those options. Such kernels accept every move, so their step size is not adapted. */
#define EM_STOCHASTIC_FIELDS(first_step)                                                           \
    EM_SAMPLER_FIELDS_FROM(first_step, "0.8"),                                                     \
        EM_INT(em_stochastic_options, leapfrog_steps, .minimum = 1, .maximum = 1e6,                \
               .fallback = "10", .doc = "inner steps of an iteration"),                            \
        EM_CHOICE(em_stochastic_options, minibatch_order, .choices = em_minibatch_orders,          \
                  .fallback = "drawn",                                                             \
                  .doc = "drawn: each minibatch by itself; epoch: all observations in turn, in "   \
                         "an order that is shuffled anew for each pass over them"),                \
        EM_REALS(                                                                                  \
            em_stochastic_options, halve_at, .maximum = 1e15, .fallback = "",                      \
            .doc =                                                                                 \
                "epochs at which step_size is halved, warmup counted: [20, 30]; an epoch has as "  \
                "many inner steps as the data have minibatches, or one step without minibatches"), \
        EM_REAL(em_stochastic_options, decay_power, .maximum = 1, .fallback = "0",                 \
                .doc = "exponent c: the step size in iteration t is step_size (1 + t / "           \
                       "b)^-c; above 1/2 for convergence; 0: a constant step size"),               \
        EM_REAL(em_stochastic_options, decay_scale, .minimum = 1e-300, .maximum = 1e300,           \
                .fallback = "1000", .doc = "b of the decreasing step size, in iterations")

/* The row of a kernel that can reduce its injected noise. */
#define EM_CORRECT_NOISE_FIELD(options, by_default)                                                \
    EM_BOOL(options, correct_noise, .fallback = by_default,                                        \
            .doc =                                                                                 \
                "reduce the injected noise by the noise of minibatches, as estimated in warmup")

/* em_sampler_ops.n_extra of kernels with an extra number for each parameter. Rows are padded, so
 * that they line up with the panels. Local. */
int64_t em_stochastic_extra_row(const void *options, int64_t dim);

/* Checks what the rows of the options cannot express. On an error, *name is the option, and the
 * message says what was found and expected. Local. Errors: EM_ECONFIG. */
em_status em_stochastic_check(const em_stochastic_options *options, const char **name);

/* The factor of step_size in an iteration (from 0, warmup included), for `n_row` observations in
 * all. Local. */
double em_stochastic_step_scale(const em_stochastic_options *options, int64_t n_row,
                                int64_t iteration);

/* Estimates the log density and its gradient for the chains of a query, each from its own
 * minibatch. This is evaluation k of `per_iteration` in this iteration. If context->ranges is not
 * NULL, the next move computes the gradient, and log_density is set only by the last evaluation of
 * an iteration. Errors: EM_EMODEL. */
em_status em_stochastic_evaluate(const em_stochastic_options *options,
                                 const em_step_context *context, int64_t per_iteration, int64_t k,
                                 em_query query);

/* The gradient at the positions of the block, from the minibatch of inner step k, where each inner
 * step has one gradient. It is stored in the block or, if gradients are computed by coordinate
 * ranges, in the coordinate blocks of the next move. Errors: EM_EMODEL. */
static inline em_status em_stochastic_gradient(const em_stochastic_options *options,
                                               const em_step_context *context, em_block *block,
                                               int64_t k)
{
    return em_stochastic_evaluate(options, context, options->leapfrog_steps, k,
                                  em_block_query(block));
}

/* Runs an iteration of a block by calls of `take`. There is one call for all chains, or, if
 * gradients are estimated chain by chain, one for each chain, so that the data of a chain stay in a
 * cache from its gradient to its update. `take` stores nothing in the sampler between calls;
 * `chain` is the first chain of its block. `by_coordinates`: `take` moves every coordinate
 * independently, in coordinate blocks (sampler/stochastic/coordinate_block.h), and calls
 * em_stochastic_gather at the end. Then shards may divide the moves among them, or the model may
 * compute the gradient for one coordinate block at a time. Errors: those of `take`, EM_EMEMORY. */
typedef em_status em_stochastic_iteration(em_sampler *sampler, const em_step_context *context,
                                          em_block *block, int64_t chain);
em_status em_stochastic_in_turns(const em_stochastic_options *options, em_sampler *sampler,
                                 const em_step_context *context, em_block *block,
                                 bool by_coordinates, em_stochastic_iteration *take);

/* Ends an iteration whose moves were divided among shards: gathers the positions, momenta,
 * gradients and extra numbers of all shards. Does nothing in other iterations. Collective over the
 * ranks of a group. */
void em_stochastic_gather(const em_step_context *context, em_block *block);

/* The number of inner step k of this iteration, counted from the start of the run. Local. */
static inline int64_t em_stochastic_step_number(const em_stochastic_options *options,
                                                const em_step_context *context, int64_t k)
{
    return context->iteration * options->leapfrog_steps + k;
}

/* Fills z [n_chain][stride] with standard normals for all chains of the block or coordinate block,
 * padding zero. `number` counts the panels of one purpose over the run. */
void em_stochastic_normals(const em_step_context *context, const em_block *block,
                           em_purpose purpose, int64_t number, double *z);

/* Draws the noise of inner step k. Each iteration has one panel of noise for each step. */
void em_stochastic_noise(const em_stochastic_options *options, const em_step_context *context,
                         const em_block *block, int64_t k, double *z);

/* Declares, before a gradient, that em_stochastic_noise comes next with these arguments for all
 * coordinate blocks. If the shards divide the moves of one chain, they draw them into z [stride]
 * while they wait for the gradient. Local. */
void em_stochastic_expect_noise(const em_stochastic_options *options,
                                const em_step_context *context, const em_block *block, int64_t k,
                                double *z);

/* The standard normal number `index` of chain c in this iteration, for thermostats. */
double em_stochastic_normal(const em_step_context *context, const em_block *block, int64_t c,
                            uint64_t index);

/* Whether position, momentum, gradient and extra numbers of chain c are all finite. */
bool em_chain_is_finite(const em_block *block, int64_t c);

/* Writes lp, step_size, n_steps and diverging of chain c, the statistics of a kernel without
 * acceptance. */
extern const em_stat em_stochastic_stats[];
void em_stochastic_report(const em_stochastic_options *options, const em_step_context *context,
                          em_block *block, int64_t c, bool diverging);
