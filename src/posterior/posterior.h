/* The log density that a sampler uses: log prior + log likelihood of a model, summed over the
 * shards of the data. */
#pragma once

#include "emass/model/latent.h"
#include "emass/model/metric.h"
#include "emass/model/minibatch.h"
#include "emass/model/ranges.h"
#include "emass/shards.h"
#include "par/shard_reduction.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct em_posterior em_posterior;

/* The functions that a model calls to sum over shards; `grid` outlives them. Local. */
em_shards em_shards_of(const em_grid *grid);

/*
 * Computes the summary of a new model, which is a sum over all parts of the data of all shards, and
 * passes it to the model. If the model has none, only the sizes of the parts are checked. To be
 * called once, before the first density. grid NULL: this shard alone. Collective over the ranks of
 * a group, which fail together. Errors: EM_EMEMORY; EM_EMODEL where the parts are invalid.
 */
em_status em_model_summarise(em_model *model, const em_grid *grid);

/* Creates a posterior for blocks of up to `n_chain` chains. `model` and `grid` outlive it. Local.
 * Errors: EM_EMEMORY. */
em_status em_posterior_create(em_model *model, const em_grid *grid, int64_t n_chain,
                              em_posterior **out);
void em_posterior_destroy(em_posterior **posterior);

/* The memory of the bins of sums over all rows, in bytes. Minibatches on one shard do not use it.
 * Local. */
double em_posterior_bytes_of_bins(const em_posterior *posterior);

/* Creates the density of `parent` as a function of one block of its parameters, for a kernel that
 * moves this block. The other parameters have their values in `theta` [n_chain][em_stride(dim)],
 * whose first row is chain first_chain. `parent`, `block` and `theta` must outlive it. Local. */
em_status em_posterior_create_part(em_posterior *parent, const em_parameters *block,
                                   int64_t n_chain, int64_t first_chain, const double *theta,
                                   em_posterior **out);

/*
 * From now on minibatches are also summed part by part, so that their sums have the same bits on
 * any number of shards. Otherwise their rows are the same, but the sums differ by rounding. Local.
 * Errors: EM_EMEMORY.
 */
em_status em_posterior_sum_by_parts(em_posterior *posterior);

/* Whether the model has observations; without any, the density is the prior. Local. */
static inline bool em_model_has_likelihood(const em_model *model)
{
    return model->rows.total > 0 && model->ops->add_likelihood;
}

/*
 * log_density[c] and gradient[c][0..dim) of the posterior at theta[c], for all chains of the panel
 * in one call; its stride is em_stride(dim), with zero padding, which stays zero in the gradient.
 * All rows of the data are used; the rows of the query are ignored. Collective over the ranks of a
 * group (Local for one shard), which fail together. Errors: EM_EMODEL. A log density that is not
 * finite is no error; it is returned as computed.
 */
em_status em_posterior_evaluate(em_posterior *posterior, const em_query *query);

/* How a gradient is estimated. Every chain and every evaluation has its own random observations. */
typedef struct em_minibatch {
    int64_t size; /* observations per evaluation; if at least their number, the gradient is exact */
    bool replacement; /* drawn with replacement, else distinct ones */
    bool by_epoch; /* evaluations use all observations in turn, each once in an epoch, in an order
                      that is shuffled for every chain and epoch */
} em_minibatch;

/* The number of evaluations in an epoch; the last one may have fewer observations. Local. */
static inline int64_t em_minibatches_of_epoch(int64_t n_row, int64_t size)
{
    return n_row / size + (n_row % size > 0);
}

/* Estimates log_density and gradient from a minibatch, without bias: prior + (N/n) sum of the n
 * chosen observations. Shapes and errors are those of em_posterior_evaluate. The seed, chain and
 * iteration of the query determine the rows, whatever the number of shards. */
em_status em_posterior_estimate(em_posterior *posterior, const em_minibatch *minibatch,
                                const em_query *query);

/* Whether the model computes such estimates itself, on this rank alone and chain by chain. Then one
 * call for each chain is as fast as one call for all. Local. */
bool em_posterior_estimates_alone(const em_posterior *posterior, const em_minibatch *minibatch);

/*
 * If the model has that capability (emass/model/ranges.h), a sampler may compute the gradient of
 * such an estimate for one range of parameters at a time. The calls are: the estimate of one chain
 * without its gradient; then for each range its gradient, and its parameters after they were moved.
 * The data of a range may be prefetched. `published` as in em_model_ranges.estimate. Local, but
 * while moves are divided the estimate is Collective over the ranks of a group. Errors: EM_EMODEL.
 */
bool em_posterior_has_ranges(const em_posterior *posterior);
em_status em_posterior_estimate_ranges(em_posterior *posterior, const em_minibatch *minibatch,
                                       const em_query *query, bool published);
void em_posterior_gradient_range(em_posterior *posterior, int64_t first, int64_t n,
                                 const double *theta, double *gradient);
void em_posterior_publish(em_posterior *posterior, int64_t first, int64_t n, const double *theta);
void em_posterior_fetch_range(const em_posterior *posterior, int64_t first, int64_t n);

/*
 * The shards of a group may divide the moves of an iteration among them, if they share memory and
 * the kernel moves every coordinate by itself. All shards then share one panel of positions. Each
 * shard moves one coordinate range of it and gets the gradient of that range alone. In the other
 * panels each shard has its own range only, until these are gathered.
 */
typedef struct em_span {
    int64_t first, end; /* numbers first .. end - 1 of a panel */
} em_span;

/* Whether the moves may be divided. Collective over the ranks of a group. Errors: EM_EMEMORY. */
em_status em_posterior_may_partition(em_posterior *posterior, const em_minibatch *minibatch,
                                     bool *may);

/* The range *first .. *end - 1 of n items that is assigned to this shard. Local. */
void em_posterior_own_range(const em_posterior *posterior, int64_t n, int64_t *first, int64_t *end);

/* Begins and ends an iteration whose moves the shards divide. Begin copies the positions into the
 * shared panel and returns it. Until the end, estimates are at the positions in that panel, and
 * this shard may write only the range `own` of it, between two estimates. While it waits for others
 * it does `meanwhile` (may be NULL). Begin is Collective over the ranks of a group; end is Local.
 */
double *em_posterior_begin_partitioned(em_posterior *posterior, em_span own, const double *theta,
                                       const em_meanwhile *meanwhile);
void em_posterior_end_partitioned(em_posterior *posterior);

/* Whether gradients of a panel of n_chain chains may then be computed by ranges, too. Estimates are
 * then Collective over the ranks of a group. Local. */
bool em_posterior_partitions_gradient(const em_posterior *posterior, int64_t n_chain);

/* Gathers a panel [n] of which each shard has its own range in `from`: `to`, which may be `from`,
 * becomes the whole panel. Overwrites the shared panel, unless that is `from`. Collective over the
 * ranks of a group. */
void em_posterior_gather_partitioned(const em_posterior *posterior, int64_t n, const double *from,
                                     double *to);

/* Sums x [n] over the shards, each of which has computed the contribution of its range. Collective
 * over the ranks of a group. */
void em_posterior_sum_partitioned(const em_posterior *posterior, int64_t n, double *x);

/*
 * The model's own transition of a panel of chains. The field `shards` of the update is ignored.
 * Collective over the ranks of a group, which fail together. Errors: EM_EMODEL.
 */
em_status em_posterior_update(em_posterior *posterior, const em_update *update);

/* Calls the model's after_iteration (emass/model/latent.h) with the positions of a panel of chains,
 * if the model has that function. Collective and errors: as em_posterior_update. */
em_status em_posterior_after_iteration(em_posterior *posterior, const em_update *after);

/* Calls the model's pool (emass/model/latent.h), if it has that function. Collective over all
 * ranks. Errors, agreed: EM_EMODEL, EM_EMEMORY. */
em_status em_posterior_pool(em_posterior *posterior, const em_update *at);

/* Agrees on a status within a group, before a call that is Collective over its ranks. All of them
 * return the status of the lowest rank that failed, and have its message; EM_OK if none failed.
 * Collective over the ranks of a group. */
em_status em_posterior_share_failure(const em_posterior *posterior, em_status status);

/* Whether the model has a metric. Local. Errors: EM_ECONFIG. */
em_status em_posterior_has_metric(const em_posterior *posterior);

/*
 * The model's metric G at position theta [dim] of chain `chain`, for models whose metric is not
 * diagonal: metric [dim][dim], symmetric, and derivative [dim][dim][dim], whose matrix k is dG /
 * dtheta_k (NULL: not computed). For a block of the parameters it is the corresponding part of the
 * metric. Collective over the ranks of a group (Local for one shard), which fail together. Errors:
 * EM_EMODEL, EM_EMEMORY, those of em_posterior_has_metric.
 */
em_status em_posterior_metric(em_posterior *posterior, int64_t chain, const double *theta,
                              double *metric, double *derivative);

/* Whether that metric is diagonal; em_posterior_diagonal then computes it. Local. */
bool em_posterior_is_diagonal(const em_posterior *posterior);

/* Computes the outputs of `ask` at the position ask->theta [dim] of chain `chain`. If this is the
 * posterior of a block of the parameters, ask->block is set to that block. Local. */
void em_posterior_diagonal(const em_posterior *posterior, int64_t chain, const em_diagonal *ask);

const em_model *em_posterior_model(const em_posterior *posterior); /* Local. */

/* Whether an evaluation may fail (model/external/failures.h). A log density of NaN is then a
 * failure, which says nothing about the density. Local. */
bool em_posterior_may_fail(const em_posterior *posterior);

/* Number of (chain, gradient) evaluations so far on this rank. Local. */
int64_t em_posterior_evaluations(const em_posterior *posterior);
