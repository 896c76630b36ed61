/* Common parts of the stochastic-gradient kernels without thermostats: the state is advanced in
 * place and restored where a chain diverged. All Local, but the target may sum over shards. */
#pragma once

#include "sampler/stochastic/bath.h"
#include "sampler/stochastic/coordinate_block.h"
#include "sampler/stochastic/stochastic.h"

/* First member of such a kernel; `options` begins with em_stochastic_options. */
typedef struct em_langevin {
    em_sampler base;
    const em_stochastic_options *options;
    em_baths baths;    /* of the injected noise, for kernels that keep one */
    double *step_size; /* [all chains] of the last iteration */
    /* Of the chains of the block that is moved: */
    em_bath **bath;
    double *eps;
    /* Panels [n_chain][stride]: where the iteration began, and room to work in. */
    double *theta_before, *momentum_before;
    double *velocity, *noise, *normals;
    double *log_density_before; /* [n_chain] */
    /* Whether theta_before is of this iteration, and whether the others are; whether
     * em_langevin_move has found which positions are finite: */
    bool marked, began, looked;
    bool *finite; /* [n_chain] */
    bool heats;   /* its momenta are of a heat bath: a chain that is put back gets a fresh one */
    double *extra_before; /* [n_chain][block->n_extra]; NULL: chains carry nothing else */
} em_langevin;

/* A part of a step that moves every number by itself: that of one coordinate block. The panels of
 * the kernel given begin where the coordinate block does. */
typedef void em_langevin_part(em_langevin *s, const em_step_context *context, em_block *block,
                              int64_t k);

/* A kernel of `size` bytes, zeroed beyond its em_langevin. Errors: EM_EMEMORY. */
em_status em_langevin_create(const em_sampler_ops *ops, const void *options, size_t size,
                             int64_t n_chain, int64_t dim, em_langevin **out);
void em_langevin_destroy(em_sampler *sampler);

/* For kernels whose chains carry `n_extra` numbers that live on, and are put back with them.
 * Errors: EM_EMEMORY. */
em_status em_langevin_keep_extra(em_langevin *s, int64_t n_chain, int64_t n_extra);

/* N, for kernels that follow mean gradients; 1 where the model has no observations. */
double em_langevin_observations(const em_step_context *context);

/* Marks where the iteration begins, and with which step sizes; `chain` is the first of the block
 * among all chains of the kernel. */
void em_langevin_begin(em_langevin *s, const em_step_context *context, const em_block *block,
                       int64_t chain);

/* The same for a kernel that moves its block by em_langevin_move alone, which marks positions and
 * nothing else: momenta it either has not, or it `heats`. */
void em_langevin_start(em_langevin *s, const em_step_context *context, const em_block *block,
                       int64_t chain);

/* Takes the iteration, `apart` where masses and baths are diagonal. Errors: those of `take`. */
em_status em_langevin_in_turns(em_langevin *s, const em_step_context *context, em_block *block,
                               em_stochastic_iteration *take);

/* Moves the block in inner step k. Where masses and baths are diagonal, one coordinate block is
 * moved after another, and panels are read and written once. */
void em_langevin_move(em_langevin *s, const em_step_context *context, em_block *block, int64_t k,
                      em_langevin_part *part);

/* Puts every chain whose position or log density is not finite back to where the iteration began
 * (in all these kernels what is not finite in a gradient or momentum reaches the position within
 * the step), and fills the statistics of em_stochastic_stats: lp is the estimate of the last
 * gradient evaluation. The gradient of a chain that diverged is left as it is. */
void em_langevin_end(em_langevin *s, const em_step_context *context, em_block *block);

/* Marks chain c as failed, so that the end of the iteration restores it. */
void em_langevin_lose(em_block *block, int64_t c);

/* em_sampler_ops.noise_share of kernels whose baths are fixed, or are N(0, M - eps/2 V) with the
 * step sizes of the last iteration. */
double em_langevin_noise_share(const em_sampler *sampler);

/* The gradient at theta from the k-th minibatch of the iteration, into the block, or, of slopes,
 * into the coordinate blocks of the next move (em_stochastic_in_turns). */
em_status em_langevin_gradient(em_langevin *s, const em_step_context *context, em_block *block,
                               int64_t k);

/* Standard normals of the k-th inner step of the iteration, into s->normals. */
void em_langevin_normals(em_langevin *s, const em_step_context *context, const em_block *block,
                         int64_t k);

/* p ~ N(0, M) */
void em_langevin_refresh(em_langevin *s, const em_step_context *context, em_block *block);

/* to [n] <- to + from */
void em_langevin_sum(int64_t n, const double *from, double *to);

/* to <- to + fraction eps from, for panels of the block */
void em_langevin_add(const em_langevin *s, const em_block *block, double fraction,
                     const double *from, double *to);

/* theta <- theta + fraction eps W p */
void em_langevin_drift(em_langevin *s, const em_step_context *context, em_block *block,
                       double fraction);
