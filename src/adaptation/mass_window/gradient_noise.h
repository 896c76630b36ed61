/*
 * The covariance V of one minibatch gradient, estimated in each window of warmup. A sample is the
 * difference of two independent minibatch gradients at one position of one chain. V is half the
 * second moment of these differences, pooled over the chains that share.
 */
#pragma once

#include "emass/visitor.h"
#include "par/grid.h"
#include "sampler/kernel/sampler.h"

#include <stdbool.h>

typedef struct em_gradient_noise em_gradient_noise;

/* `shares`: one estimate for all chains of the run, else one for each. `options` and `grid` outlive
 * it. Local. Errors: EM_EMEMORY. */
em_status em_gradient_noise_create(em_owner *owner, const em_sampler_options *options,
                                   em_grid *grid, bool shares, em_structure structure, int64_t dim,
                                   em_gradient_noise **out);

/* The bytes of memory that it takes; NULL: 0. */
double em_gradient_noise_bytes(const em_gradient_noise *noise);

/* Adds one sample of every chain, from two gradients each. Local, but evaluates the posterior. */
em_status em_gradient_noise_sample(em_gradient_noise *noise, em_posterior *posterior, uint64_t seed,
                                   int64_t iteration, const em_block *block);

/* The last sample of chain c, [dim], whose covariance is V. Local. */
const double *em_gradient_noise_last(const em_gradient_noise *noise, int64_t c);

/* Publishes the estimates from the samples since the last call, and discards the samples. From
 * fewer than 10 dim samples only the diagonal is estimated; without samples the estimate is zero.
 * Collective. Errors: EM_EMEMORY, agreed. */
em_status em_gradient_noise_publish(em_gradient_noise *noise);

/* The published estimates [n_local_chain]; NULL before the first. Local. */
const em_noise *const *em_gradient_noise_published(const em_gradient_noise *noise);

/* Passes its state to a visitor. Collective. Errors: the visitor's. */
em_status em_gradient_noise_visit(em_gradient_noise *noise, const em_visitor *visitor);
