/* Common parts of first-order kernels that move by a metric: each inner step uses a gradient,
 * noise, and the metric at the chain's position. All Local, but evaluations of the posterior are
 * Collective over the ranks of a group of shards. */
#pragma once

#include "sampler/riemannian/riemannian_metric.h"
#include "sampler/stochastic/langevin.h"

/* The first member of the options of these kernels. */
typedef struct em_metric_langevin_options {
    em_stochastic_options stochastic;
    em_metric_options metric;
} em_metric_langevin_options;

/* The sampler of these kernels. */
typedef struct em_metric_langevin {
    em_langevin langevin;
    const em_metric_langevin_options *options;
    em_metric *metric;
} em_metric_langevin;

/* Sets up a sampler. `of` is the divergence term in its drift. Errors: EM_EMEMORY, EM_ECONFIG. */
em_status em_metric_langevin_set_up(em_sampler *sampler, em_divergence of, int64_t n_chain,
                                    int64_t dim);

/* em_sampler_ops.metric. */
em_metric_kind em_metric_langevin_metric(const void *options);

/* One iteration of all chains. `agitate` (NULL: nothing) computes the noise of all chains from the
 * standard normals in langevin.normals. `move` moves chain c after the metric has been evaluated at
 * its position. A chain whose metric cannot be evaluated is marked as diverging. */
em_status em_metric_langevin_step(em_metric_langevin *s, const em_step_context *context,
                                  em_block *block,
                                  void (*agitate)(em_metric_langevin *, const em_block *),
                                  void (*move)(em_metric_langevin *, em_block *, int64_t c));
