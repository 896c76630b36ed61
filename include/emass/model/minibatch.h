/*
 * Capability `minibatch`: an estimate of prior and likelihood from listed rows by one function.
 * Models without it can also be sampled with minibatches, by add_prior and add_likelihood. It is
 * for models of so many parameters that each pass over them takes noticeable time.
 *
 * Example minibatch:
 *     // y_i ~ normal(mu, 1); sampler: {name: sgld, step_size: 0.05, minibatch: 2}
 *     enum { N = 5 };
 *     static const double y[N] = {1.1, 0.4, 0.7, 1.9, 0.9};
 *     static const em_variable mu = {.name = "mu"};
 *     typedef struct { em_model model; } means;
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
 *     static em_status estimate(em_model *model, const em_query *query, double scale,
 *                               bool with_prior)
 *     {
 *         const double theta = query->theta[0];
 *         double sum = 0, squares = 0;
 *         for (int64_t k = 0; k < query->rows.count; k++) {
 *             const double z = y[em_row(&query->rows, k)] - theta;
 *             sum += z;
 *             squares += z * z;
 *         }
 *         memset(query->gradient, 0, (size_t)query->stride * sizeof(double));
 *         query->gradient[0] = scale * sum - (with_prior ? theta : 0);
 *         *query->log_density = -scale * squares / 2 - (with_prior ? theta * theta / 2 : 0);
 *         return EM_OK;
 *     }
 *     EMASS_PLUGIN({.name = "minibatch", .create = create, .destroy = destroy,
 *                   .add_prior = add_prior,
 *                   .add_likelihood = add_likelihood,
 *                   .minibatch = &(const em_model_minibatch){estimate}});
 */
#pragma once

#include "emass/model.h"

EM_BEGIN_C

typedef struct em_model_minibatch {
    /*
     * Computes the estimate for one chain: the prior, if `with_prior`, plus `scale` times the
     * likelihood of the listed rows. It overwrites log density and gradient, padding included. The
     * results must equal those from add_prior and add_likelihood. Each shard gets the rows that it
     * holds, which may be none; only the first shard gets `with_prior`. Local.
     */
    em_status (*estimate)(em_model *model, const em_query *query, double scale, bool with_prior);
} em_model_minibatch;

EM_END_C
