/*
 * Capability `ranges`: the gradient of an estimate by one range of parameters at a time, for models
 * of so many parameters that they are far from each other in memory. A kernel asks for the gradient
 * of a range when it has these parameters at hand, and publishes them when it has moved them. Such
 * a model has the capability `minibatch` too.
 *
 * Example ranges:
 *     // y_i ~ normal(mu, 1); sampler: {name: sgld, step_size: 0.05, minibatch: 2}
 *     enum { N = 5 };
 *     static const double y[N] = {1.1, 0.4, 0.7, 1.9, 0.9};
 *     static const em_variable mu = {.name = "mu"};
 *     // What estimates leave for the gradient; theta, as it was published.
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

/* What the shards of a node share of one chain, each of which moves a range of the parameters. */
typedef struct em_range_parts {
    double *part;           /* [n_shard][room]: what each has left for the gradient, */
    int64_t n_shard, shard; /* this shard */
    int64_t room;
    void *published; /* [room + 16] floats: the parameters, as the model wrote them */
} em_range_parts;

typedef struct em_model_ranges {
    /* As em_model_minibatch.estimate, with the prior, but that the gradient is not written. With
     * `published`, theta is, all of it, what `publish` was given since the last estimate. Local. */
    em_status (*estimate)(em_model *model, const em_query *query, double scale, bool published);
    /* The gradient of the last estimate by parameters first .. first + n - 1, which are theta [n],
     * as they were then. Local. */
    void (*gradient)(em_model *model, int64_t first, int64_t n, const double *theta,
                     double *gradient);
    /* In the next estimate parameters first .. first + n - 1 are theta [n]; gradients by others may
     * still be asked for. Local. */
    void (*publish)(em_model *model, int64_t first, int64_t n, const double *theta);
    /*
     * The same where shards of one node divide the moves of one chain; all three or none, and only
     * for models that are `single`. estimate_part is for the query's rows, the prior on the first
     * shard; it writes what it leaves for gradients into this shard's part, which is the query's
     * gradient, instead. After all have: gradients by the range of this shard, of all parts, as
     * the sum of what each shard's gradient would be, in their order. publish_part writes into
     * `published`; all shards see it in the next estimate. Local.
     */
    em_status (*estimate_part)(em_model *model, const em_query *query, double scale, bool published,
                               const em_range_parts *parts);
    void (*gradient_of_parts)(em_model *model, int64_t first, int64_t n, const double *theta,
                              const em_range_parts *parts, double *gradient);
    void (*publish_part)(em_model *model, int64_t first, int64_t n, const double *theta,
                         const em_range_parts *parts);
    /* May be NULL. Fetches into the cache what `gradient` and `publish` of parameters first ..
     * first
     * + n - 1 will need of memory. Local. */
    void (*fetch)(const em_model *model, int64_t first, int64_t n);
} em_model_ranges;

EM_END_C
