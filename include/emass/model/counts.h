/*
 * Capability `counts`: a likelihood that depends on the data only through integer counts over the
 * rows of a query. Sums of integers below 2^53 are exact, so they do not depend on how rows are
 * divided over shards. Shards of such a model need not hold whole parts.
 *
 * Example counts:
 *     // y_i ~ Bernoulli(1 / (1 + e^-mu)): what counts is how many are 1, and how many there are
 *     enum { N = 5 };
 *     static const double y[N] = {1, 0, 1, 1, 0};
 *     static const em_variable mu = {.name = "mu"};
 *     typedef struct { em_model model; } coins;
 *     static void destroy(em_model *model) { free(model); }
 *     static em_status create(const void *options, const em_model_context *context,
 *                             em_model **out)
 *     {
 *         coins *self = calloc(1, sizeof *self);
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
 *                 query->log_density[c] += 1;
 *                 query->gradient[c * query->stride] += y[em_row(&query->rows, k)];
 *             }
 *         return EM_OK;
 *     }
 *     static void finish(em_model *model, const em_query *sums)
 *     {
 *         for (int64_t c = 0; c < sums->n_chain; c++) {
 *             const double theta = sums->theta[c * sums->stride], n = sums->log_density[c];
 *             const double ones = sums->gradient[c * sums->stride];
 *             sums->log_density[c] = ones * theta - n * log1p(exp(theta));
 *             sums->gradient[c * sums->stride] = ones - n / (1 + exp(-theta));
 *         }
 *     }
 *     EMASS_PLUGIN({.name = "counts", .create = create, .destroy = destroy,
 *                   .add_prior = add_prior,
 *                   .add_likelihood = add_likelihood,
 *                   .counts = &(const em_model_counts){.finish = finish, .all = true}});
 */
#pragma once

#include "emass/model.h"

EM_BEGIN_C

typedef struct em_model_counts {
    /* With this function add_likelihood adds only integers to gradient and log_density. They are
     * summed over all shards. The function then replaces the sums by the log likelihood and its
     * gradient. OPTIONAL. Local. */
    void (*finish)(em_model *model, const em_query *sums);
    bool all; /* all its likelihoods are computed from counts, so nothing depends on the number of
                 shards */
} em_model_counts;

EM_END_C
