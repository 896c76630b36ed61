/* Common parts of the stochastic-gradient kernels without thermostats: the state is advanced in
 * place, and restored for a chain that diverged. All Local, but evaluations of the posterior are
 * Collective over the ranks of a group of shards. */
#pragma once

#include "sampler/stochastic/bath.h"
#include "sampler/stochastic/coordinate_block.h"
#include "sampler/stochastic/stochastic.h"

typedef struct em_langevin em_langevin;

/* A part of a step, for a step that moves every coordinate independently. It is applied to one
 * coordinate block after another. The panels of `s` begin at the first coordinate of the block. */
typedef void em_langevin_part(em_langevin *s, const em_step_context *context, em_block *block,
                              int64_t k);

/* The first member of each of these kernels; `options` begins with em_stochastic_options. */
struct em_langevin {
    em_sampler base;
    const em_stochastic_options *options;
    em_baths baths;    /* of the injected noise, if the kernel uses them */
    double *step_size; /* [all chains] of the last iteration */
    /* For the chains of the block that is moved: */
    em_bath **bath;
    double *eps;
    /* Panels [n_chain][stride]: the state at the start of the iteration, and work space. */
    double *theta_before, *momentum_before;
    double *velocity, *noise, *normals;
    double *log_density_before; /* [n_chain] */
    /* marked: theta_before was stored in this iteration. began: so were the other copies. looked:
     * em_langevin_move has set `finite`. */
    bool marked, began, looked;
    bool *finite;         /* [n_chain] */
    bool heats;           /* a heat bath draws momenta, so a restored chain gets a fresh momentum */
    double *extra_before; /* [n_chain][block->n_extra]; NULL: chains have none */
    /* For em_langevin_step: what comes before the first gradient (NULL: nothing) and after each,
     * and whether an iteration begins with fresh momenta. */
    em_langevin_part *before, *after;
    bool refreshes;
};

/* em_sampler_ops.set_up and em_sampler_ops.release. */
em_status em_langevin_set_up(em_sampler *sampler, int64_t n_chain, int64_t dim);
void em_langevin_release(em_sampler *sampler);

/* What these kernels have in common in their em_sampler_ops. */
#define EM_LANGEVIN_OPS                                                                            \
    .stats = em_stochastic_stats, .release = em_langevin_release, .minibatches = true

/* The number N of observations, for kernels that use mean gradients; 1 if the model has none. */
double em_langevin_observations(const em_step_context *context);

/* Stores the state and the step sizes at the start of an iteration; `chain` is the index of the
 * first chain of the block among all chains of the kernel. */
void em_langevin_begin(em_langevin *s, const em_step_context *context, const em_block *block,
                       int64_t chain);

/* Begins an iteration, as em_langevin_begin, of a kernel that moves its block by em_langevin_move
 * alone. That function stores the positions. Nothing else is stored: such a kernel has no momenta,
 * or `heats` is true. */
void em_langevin_start(em_langevin *s, const em_step_context *context, const em_block *block,
                       int64_t chain);

/* Runs the iteration by em_stochastic_in_turns, with by_coordinates if masses and baths are
 * diagonal. First it updates the baths, if the sampler has them. Errors: those of em_baths_update
 * and of `take`. */
em_status em_langevin_in_turns(em_langevin *s, const em_step_context *context, em_block *block,
                               em_stochastic_iteration *take);

/* em_sampler_ops.step of kernels with `after`: leapfrog_steps gradients and moves, by
 * em_langevin_in_turns. A kernel without baths has its whole state stored, as by em_langevin_begin.
 */
em_status em_langevin_step(em_sampler *sampler, const em_step_context *context, em_block *block);

/* Moves the block in inner step k. If masses and baths are diagonal, it moves one coordinate block
 * after another, so that panels are read and written once. */
void em_langevin_move(em_langevin *s, const em_step_context *context, em_block *block, int64_t k,
                      em_langevin_part *part);

/* Restores every chain whose position or log density is not finite to its state at the start of the
 * iteration. In all these kernels a gradient or momentum that is not finite makes the position not
 * finite within the step. Writes the statistics em_stochastic_stats; lp is the estimate of the last
 * gradient evaluation. The gradient of a chain that diverged is not restored. */
void em_langevin_end(em_langevin *s, const em_step_context *context, em_block *block);

/* em_sampler_ops.noise_share of kernels whose baths have a fixed b, or are N(0, M - eps/2 V) with
 * the step sizes eps of the last iteration. */
double em_langevin_noise_share(const em_sampler *sampler);

/* Draws all momenta p ~ N(0, M). */
void em_langevin_refresh(em_langevin *s, const em_step_context *context, em_block *block);

/* to <- to + fraction eps from, for panels of the block */
void em_langevin_add(const em_langevin *s, const em_block *block, double fraction,
                     const double *from, double *to);

/* theta <- theta + fraction eps W p */
void em_langevin_drift(em_langevin *s, const em_step_context *context, em_block *block,
                       double fraction);
