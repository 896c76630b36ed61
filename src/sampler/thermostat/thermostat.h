/*
 * Common parts of the thermostat kernels: momenta and thermostats that persist between iterations,
 * in block->momentum and block->extra. Momenta are drawn anew when the mass has changed.
 * Thermostats are drawn anew only when the chain diverged, because they adapt slowly to the noise
 * of the gradient. All Local, but the target may sum over shards.
 */
#pragma once

#include "sampler/stochastic/stochastic.h"

/* First member of such a kernel; `options` begins with em_stochastic_options. */
typedef struct em_thermostat em_thermostat;
struct em_thermostat {
    em_sampler base;
    const em_stochastic_options *options;
    /* Draws the thermostats of chain c from their stationary law. */
    void (*draw)(em_thermostat *self, const em_step_context *context, em_block *block, int64_t c);
    /* Of chain c, for the statistics. */
    double (*friction)(const em_block *block, int64_t c);
    double *start;                   /* [n_chain][stride] where the iteration began */
    double *start_density, *product; /* [n_chain]; p^T W p as the last drift found it */
    double *work, *normals;          /* [n_chain][stride] */
    /* Whether `start` is of this iteration, and whether em_thermostat_move has found which
     * positions are finite (what is not finite in a gradient or momentum has reached them): */
    bool marked, looked;
    bool *finite; /* [n_chain] */
};

/* A part of a step that moves every number by itself: that of one coordinate block. The products of
 * the kernel given are those of its chains. */
typedef void em_thermostat_part(em_thermostat *self, const em_step_context *context,
                                em_block *block, int64_t k);

/* em_stochastic_stats, and the friction. */
extern const em_stat em_thermostat_stats[];

/* A kernel of `size` bytes, zeroed beyond its em_thermostat. Errors: EM_EMEMORY. */
em_status em_thermostat_create(const em_sampler_ops *ops, const void *options, size_t size,
                               int64_t n_chain, int64_t dim, em_thermostat **out);
void em_thermostat_destroy(em_sampler *sampler);

/* em_sampler_ops.refresh: p ~ N(0, M), and before the first iteration the thermostats. */
em_status em_thermostat_refresh(em_sampler *sampler, const em_step_context *context,
                                em_block *block);

/* Marks where an iteration begins. */
void em_thermostat_begin(em_thermostat *self, const em_block *block);

/* The same for a kernel that moves its block by em_thermostat_move alone, which does the marking.
 */
void em_thermostat_start(em_thermostat *self, const em_block *block);

/* Moves the block in inner step k; where masses are diagonal, one coordinate block after another.
 */
void em_thermostat_move(em_thermostat *self, const em_step_context *context, em_block *block,
                        int64_t k, em_thermostat_part *part);

/* The gradient at theta from the minibatch of inner step k, likewise into the block or its
 * coordinate blocks.
 */
em_status em_thermostat_gradient(const em_thermostat *self, const em_step_context *context,
                                 em_block *block, int64_t k);

/* Standard normals of inner step k, into `normals`. */
void em_thermostat_normals(em_thermostat *self, const em_step_context *context,
                           const em_block *block, int64_t k);

/* theta <- theta + h W p for all chains, where h is `fraction` of the step size; returns p^T W p
 * of each, which drives thermostats. Uses `work`. */
const double *em_thermostat_drift(em_thermostat *self, const em_step_context *context,
                                  em_block *block, double fraction);

/* The same of a coordinate block, whose p^T W p is added to that of the coordinate blocks before.
 */
void em_thermostat_add_drift(em_thermostat *self, const em_step_context *context, em_block *block,
                             double fraction);

/* Fills em_thermostat_stats, lp being the estimate of the last minibatch. A chain whose state is
 * not finite, or whose momentum is hotter than any approach to the posterior makes it, is
 * diverging: it is put back to where the iteration began, and drawn afresh. */
void em_thermostat_end(em_thermostat *self, const em_step_context *context, em_block *block);
