/*
 * Capability `averages`: averages over the draws of each chain, which are reported once, at the end
 * of a run. It is for arrays that are too large to be stored with every draw. They go into the
 * group `averages` of the output file.
 *
 * Example averages:
 *     // The mean of theta^2 over the draws of each chain; n and the mean are state of the chain
 *     static const em_variable mu = {.name = "mu"}, square = {.name = "square"};
 *     typedef struct { em_model model; int64_t first_chain; double *sum; } means; // [n_chain][2]
 *     static void destroy(em_model *model)
 *     {
 *         free(((means *)model)->sum);
 *         free(model);
 *     }
 *     static em_status create(const void *options, const em_model_context *context,
 *                             em_model **out)
 *     {
 *         means *self = calloc(1, sizeof *self);
 *         double *sum = calloc((size_t)context->n_chain, 2 * sizeof *sum);
 *         if (!self || !sum) {
 *             free(self), free(sum);
 *             return em_fail(EM_EMEMORY, "out of memory");
 *         }
 *         const em_model model = {.ops = context->ops, .n_parameter = 1, .parameter = &mu,
 *                                 .n_average = 1, .average = &square};
 *         *self = (means){model, context->first_chain, sum};
 *         *out = &self->model;
 *         return EM_OK;
 *     }
 *     static em_status add_prior(em_model *model, const em_query *query)
 *     {
 *         for (int64_t c = 0; c < query->n_chain; c++) {
 *             const double theta = query->theta[c * query->stride];
 *             query->log_density[c] -= theta * theta / 2;
 *             query->gradient[c * query->stride] -= theta;
 *         }
 *         return EM_OK;
 *     }
 *     static double *of_chain(em_model *model, int64_t chain)
 *     {
 *         return ((means *)model)->sum + 2 * (chain - ((means *)model)->first_chain);
 *     }
 *     static void add(em_model *model, const em_draw *draw, const double *theta)
 *     {
 *         double *sum = of_chain(model, draw->chain);
 *         sum[0] += 1;
 *         sum[1] += (theta[0] * theta[0] - sum[1]) / sum[0];
 *     }
 *     static void report(em_model *model, int64_t chain, double *out)
 *     {
 *         out[0] = of_chain(model, chain)[1];
 *     }
 *     static em_status visit(em_model *model, const em_visitor *visitor)
 *     {
 *         return visitor->chains(visitor->context, "sum", 2, ((means *)model)->sum);
 *     }
 *     EMASS_PLUGIN({.name = "averages", .create = create, .destroy = destroy,
 *                   .add_prior = add_prior,
 *                   .latent = &(const em_model_latent){.visit = visit},
 *                   .averages = &(const em_model_averages){.add = add, .report = report}});
 */
#pragma once

#include "emass/model.h"

EM_BEGIN_C

/* em_model.average [n_average] lists the variables that are averaged for each chain, and
 * em_model.pooled [n_pooled] those of all chains together. The running averages are part of the
 * state of the chains (emass/model/latent.h: visit). */
typedef struct em_model_averages {
    /* OPTIONAL: adds a stored draw of sampling to the averages of its chain. It is called just
     * after the report of that draw. Local. */
    void (*add)(em_model *model, const em_draw *draw, const double *theta);
    /* OPTIONAL: combines the averages of all chains, before they are reported at the end of a run.
     * Collective over all ranks of the run. Errors, the same on all ranks: EM_EMEMORY. */
    em_status (*pool)(em_model *model);
    /* Writes the averages of a chain over its draws of sampling so far. Order of the variables and
     * collectivity: as em_model_ops.report. */
    void (*report)(em_model *model, int64_t chain, double *out);
    /* OPTIONAL: writes the pooled variables, given the mean over all chains of what `report` wrote.
     * Local. */
    void (*report_pooled)(em_model *model, const double *mean, double *out);
} em_model_averages;

EM_END_C
