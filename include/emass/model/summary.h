/*
 * Capability `summary`: a likelihood of all observations that depends on a few sums over them. The
 * sums are computed once, over all shards. add_likelihood then gets queries for all rows
 * (em_rows.all) and needs no pass over the data.
 *
 * Example summary:
 *     // y_i ~ normal(mu, 1), by n, sum y and sum y^2
 *     enum { N = 5 };
 *     static const double y[N] = {1.1, 0.4, 0.7, 1.9, 0.9};
 *     static const em_variable mu = {.name = "mu"};
 *     typedef struct { em_model model; double n, sum, squares; } means;
 *     static void destroy(em_model *model) { free(model); }
 *     static em_status create(const void *options, const em_model_context *context,
 *                             em_model **out)
 *     {
 *         means *self = calloc(1, sizeof *self);
 *         if (!self)
 *             return em_fail(EM_EMEMORY, "out of memory");
 *         self->model = (em_model){.ops = context->ops, .n_parameter = 1, .parameter = &mu,
 *                                  .n_chunk = 1, .chunk_size = 3,
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
 *     static void add(em_model *model, int64_t chunk, const em_rows *rows, double *sum)
 *     {
 *         for (int64_t k = 0; k < rows->count; k++) {
 *             const double x = y[em_row(rows, k)];
 *             sum[0] += 1;
 *             sum[1] += x;
 *             sum[2] += x * x;
 *         }
 *     }
 *     static void take(em_model *model, int64_t chunk, const double *sum)
 *     {
 *         memcpy(&((means *)model)->n, sum, 3 * sizeof *sum);
 *     }
 *     static em_status add_likelihood(em_model *model, const em_query *query)
 *     {
 *         const means *self = (const means *)model;
 *         for (int64_t c = 0; c < query->n_chain; c++) {
 *             const double theta = query->theta[c * query->stride];
 *             query->log_density[c] -= (self->squares + self->n * theta * theta) / 2;
 *             query->log_density[c] += theta * self->sum;
 *             query->gradient[c * query->stride] += self->sum - self->n * theta;
 *         }
 *         return EM_OK;
 *     }
 *     EMASS_PLUGIN({.name = "summary", .create = create, .destroy = destroy,
 *                   .add_prior = add_prior,
 *                   .add_likelihood = add_likelihood,
 *                   .summary = &(const em_model_summary){add, take}});
 */
#pragma once

#include "emass/model.h"

EM_BEGIN_C

/* A summary has em_model.n_chunk chunks of em_model.chunk_size numbers each. They are computed one
 * after the other, so that a large summary needs the memory of one chunk only. */
typedef struct em_model_summary {
    /* Adds the terms of a chunk from the observations `rows`, which are one part, to sum
     * [chunk_size]. Local. */
    void (*add)(em_model *model, int64_t chunk, const em_rows *rows, double *sum);
    /* Receives the sum of a chunk over all parts of all shards. Local. */
    void (*take)(em_model *model, int64_t chunk, const double *sum);
} em_model_summary;

EM_END_C
