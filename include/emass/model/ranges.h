/*
 * Capability `ranges`: the gradient of a minibatch estimate, computed for one range of parameters
 * at a time. It is for models whose parameters do not fit into a cache. A kernel asks for the
 * gradient of a range just before it moves these parameters, while they are in the cache, and then
 * publishes the new values. Such a model also has the capability `minibatch`.
 *
 * Example ranges:
 *     // y_i ~ normal(mu, 1); sampler: {name: sgld, step_size: 0.05, minibatch: 2}
 *     enum { N = 5 };
 *     static const double y[N] = {1.1, 0.4, 0.7, 1.9, 0.9};
 *     static const em_variable mu = {.name = "mu"};
 *     // The derivative at the last estimate; theta as the kernel last published it.
 *     typedef struct { em_model model; double slope, published; } means;
 *     static void destroy(em_model *model) { free(model); }
 *     static em_status create(const void *options, const em_model_context *context,
 *                             em_model **out)
 *     {
 *         means *self = calloc(1, sizeof *self);
 *         if (!self)
 *             return em_fail(EM_EMEMORY, "out of memory");
 *         self->model = (em_model){.ops = context->ops, .n_parameter = 1, .parameter = &mu,
 *                                  .rows = {N, N, 0, context->shard == 0 ? N : 0}}; // one part
 *         *out = &self->model;
 *         return EM_OK;
 *     }
 *     static em_status add_prior(em_model *model, const em_query *query) // mu ~ normal(0, 1)
 *     {
 *         for (int64_t c = 0; c < query->n_chain; c++) {
 *             const double theta = query->theta[c * query->stride];
 *             query->log_density[c] -= theta * theta / 2;
 *             query->gradient[c * query->stride] -= theta;
 *         }
 *         return EM_OK;
 *     }
 *     static em_status add_likelihood(em_model *model, const em_query *query)
 *     {
 *         for (int64_t c = 0; c < query->n_chain; c++)
 *             for (int64_t k = 0; k < query->rows.count; k++) {
 *                 const double z = y[em_row(&query->rows, k)] - query->theta[c * query->stride];
 *                 query->log_density[c] -= z * z / 2;
 *                 query->gradient[c * query->stride] += z;
 *             }
 *         return EM_OK;
 *     }
 *     static em_status leave(em_model *model, const em_query *query, double scale,
 *                            bool published)
 *     {
 *         means *self = (means *)model;
 *         const double theta = published ? self->published : query->theta[0];
 *         double sum = 0, squares = 0;
 *         for (int64_t k = 0; k < query->rows.count; k++) {
 *             const double z = y[em_row(&query->rows, k)] - theta;
 *             sum += z;
 *             squares += z * z;
 *         }
 *         self->slope = scale * sum - theta;
 *         *query->log_density = -scale * squares / 2 - theta * theta / 2;
 *         return EM_OK;
 *     }
 *     static void gradient(em_model *model, int64_t first, int64_t n, const double *theta,
 *                          double *out)
 *     {
 *         if (first == 0 && n > 0)
 *             out[0] = ((means *)model)->slope;
 *     }
 *     static void publish(em_model *model, int64_t first, int64_t n, const double *theta)
 *     {
 *         if (first == 0 && n > 0)
 *             ((means *)model)->published = theta[0];
 *     }
 *     static em_status estimate(em_model *model, const em_query *query, double scale,
 *                               bool with_prior)
 *     {
 *         memset(query->gradient, 0, (size_t)query->stride * sizeof(double));
 *         leave(model, query, scale, false);
 *         query->gradient[0] = ((means *)model)->slope + (with_prior ? 0 : query->theta[0]);
 *         *query->log_density += with_prior ? 0 : query->theta[0] * query->theta[0] / 2;
 *         return EM_OK;
 *     }
 *     EMASS_PLUGIN({.name = "ranges", .create = create, .destroy = destroy,
 *                   .add_prior = add_prior,
 *                   .add_likelihood = add_likelihood,
 *                   .minibatch = &(const em_model_minibatch){estimate},
 *                   .ranges = &(const em_model_ranges){leave, gradient, publish}});
 */
#pragma once

#include "emass/model.h"

EM_BEGIN_C

/* Memory that the shards of a node share for one chain. Each shard moves a range of the parameters.
 */
typedef struct em_range_parts {
    double *part; /* [n_shard][room]: intermediate results of each shard for the gradient */
    int64_t n_shard, shard; /* this shard */
    int64_t room;
    void *published; /* [room + 16] floats: the parameters, as the model wrote them */
} em_range_parts;

typedef struct em_model_ranges {
    /* Estimates the log density from a minibatch, with the prior, as em_model_minibatch.estimate,
     * but does not write the gradient. `published`: all parameters were passed to `publish` since
     * the last estimate, with the values of theta. Local. */
    em_status (*estimate)(em_model *model, const em_query *query, double scale, bool published);
    /* Writes the gradient [n] of the last estimate with respect to parameters first .. first + n -
     * 1, whose values in that estimate were theta [n]. Local. */
    void (*gradient)(em_model *model, int64_t first, int64_t n, const double *theta,
                     double *gradient);
    /* Passes the values theta [n] of parameters first .. first + n - 1 for the next estimate.
     * Gradients of the last estimate with respect to other parameters may still follow. Local. */
    void (*publish)(em_model *model, int64_t first, int64_t n, const double *theta);
    /* The three functions for the case that the shards of one node divide the moves of one chain. A
     * model has all three or none, and needs em_model.single. estimate_part uses the query's rows,
     * and the prior on the first shard. It writes intermediate results into this shard's part,
     * query->gradient. When all shards have done so, gradient_of_parts computes the gradient for
     * the range of this shard: the sum of the gradients of all shards, in their order, from all
     * parts. publish_part writes into `published`, which all shards read in the next estimate.
     * Local. */
    em_status (*estimate_part)(em_model *model, const em_query *query, double scale, bool published,
                               const em_range_parts *parts);
    void (*gradient_of_parts)(em_model *model, int64_t first, int64_t n, const double *theta,
                              const em_range_parts *parts, double *gradient);
    void (*publish_part)(em_model *model, int64_t first, int64_t n, const double *theta,
                         const em_range_parts *parts);
    /* OPTIONAL: fetches into the cache the memory that `gradient` and `publish` will need for
     * parameters first .. first + n - 1. Local. */
    void (*fetch)(const em_model *model, int64_t first, int64_t n);
} em_model_ranges;

EM_END_C
