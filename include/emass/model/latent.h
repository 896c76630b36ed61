/*
 * Capability `latent`: state that a model keeps for each chain besides theta (latent variables,
 * warm starts), and the model's own transition (a Gibbs update), which the sampler gibbs calls.
 *
 * Example latent:
 *     // y_i ~ normal(mu, 1) or, with probability 1/10, normal(mu, 10): then z_i is 1
 *     enum { N = 5 };
 *     static const double y[N] = {1.1, 0.4, 0.7, 9.5, 0.9};
 *     static const em_variable mu = {.name = "mu"};
 *     // z [n_chain][N]
 *     typedef struct { em_model model; int64_t first_chain; double *z; } mixture;
 *     static void destroy(em_model *model)
 *     {
 *         free(((mixture *)model)->z);
 *         free(model);
 *     }
 *     static em_status create(const void *options, const em_model_context *context,
 *                             em_model **out)
 *     {
 *         mixture *self = calloc(1, sizeof *self);
 *         double *z = calloc((size_t)context->n_chain * N, sizeof *z);
 *         if (!self || !z) {
 *             free(self), free(z);
 *             return em_fail(EM_EMEMORY, "out of memory");
 *         }
 *         const em_model model = {.ops = context->ops, .n_parameter = 1, .parameter = &mu};
 *         *self = (mixture){model, context->first_chain, z};
 *         *out = &self->model;
 *         return EM_OK;
 *     }
 *     static em_status update(em_model *model, const em_update *update)
 *     {
 *         const mixture *self = (const mixture *)model;
 *         for (int64_t c = 0; c < update->n_chain; c++) {
 *             double *z = self->z + (update->chain[c] - self->first_chain) * N;
 *             double *theta = update->theta + c * update->stride, normal, u[N];
 *             double sum = 0, precision = 0;
 *             const em_draw draw = em_update_draw(update, c);
 *             em_draw_normals(&draw, 0, 1, &normal);
 *             em_draw_uniforms(&draw, 1, N, u);
 *             for (int i = 0; i < N; i++) {
 *                 precision += z[i] ? 0.01 : 1;
 *                 sum += z[i] ? 0.01 * y[i] : y[i];
 *             }
 *             theta[0] = sum / precision + normal / sqrt(precision); // mu given z
 *             for (int i = 0; i < N; i++) {                          // z given mu
 *                 const double odds = 90 * exp(-0.495 * (y[i] - theta[0]) * (y[i] - theta[0]));
 *                 z[i] = u[i] < 1 / (1 + odds);
 *             }
 *         }
 *         return EM_OK;
 *     }
 *     static em_status visit(em_model *model, const em_visitor *visitor)
 *     {
 *         return visitor->chains(visitor->context, "z", N, ((mixture *)model)->z);
 *     }
 *     EMASS_PLUGIN({.name = "latent", .create = create, .destroy = destroy, .sampler = "gibbs",
 *                   .latent = &(const em_model_latent){.update = update, .visit = visit}});
 */
#pragma once

#include "emass/model.h"
#include "emass/shards.h"
#include "emass/visitor.h"

EM_BEGIN_C

/* Arguments of the model's own transition for a panel of chains. */
typedef struct em_update {
    int64_t n_chain, stride;
    const int64_t *chain; /* [n_chain] their numbers in the run, in any order */
    double *theta;        /* [n_chain][stride] replaced */
    double *log_density;  /* [n_chain] the value to report as lp; may be left unchanged */
    uint64_t seed;
    int64_t number; /* of the update, from 0: key of its random numbers */
    bool warmup;    /* learned quantities may change */
    const em_shards *shards;
    const em_parameters *block; /* the only parameters to move; NULL: all */
} em_update;

/* The key of the random numbers of chain c of the panel. */
static inline em_draw em_update_draw(const em_update *update, int64_t c)
{
    const em_draw draw = {update->seed, update->chain[c], update->number, EM_DRAW_UPDATE};

    return draw;
}

/* Each function is OPTIONAL. */
typedef struct em_model_latent {
    /*
     * A transition that leaves the posterior invariant, for sampler gibbs: a Gibbs update of theta
     * and of the latent variables. All ranks of a group call it at the same time and must arrive at
     * the same theta. If it moves only one block of the parameters, em_model.update_of is the name
     * of that block. Collective over the ranks of a group. Errors: EM_EMODEL.
     */
    em_status (*update)(em_model *model, const em_update *update);
    /*
     * Called once, at the end of warmup, so that the model can make what its update has learned
     * common to all chains of the run. Replaces the learned elements of at->theta, and all ranks of
     * a group must arrive at the same ones. Collective over all ranks. Errors: EM_EMODEL, agreed.
     */
    em_status (*pool)(em_model *model, const em_update *at);
    /*
     * Passes the model's state of each chain of this rank (besides theta) to a visitor, which saves
     * it in a checkpoint or restores it. State is indexed by the number of a chain
     * (em_update.chain), not by its row in a panel. Collective.
     */
    em_status (*visit)(em_model *model, const em_visitor *visitor);
    /*
     * Called after each iteration with the positions of a panel of chains, so that the model can
     * update its own averages or scores. theta and log_density are read only; `number` is that of
     * the iteration. Collective over the ranks of a group. Errors: EM_EMODEL.
     */
    em_status (*after_iteration)(em_model *model, const em_update *after);
    /*
     * The bytes of the state of each chain on this rank, for the memory plan of `emass check`.
     * Without this function the program creates a second model, for two chains, and compares.
     * Local.
     */
    double (*chain_bytes)(const em_model *model);
} em_model_latent;

EM_END_C
