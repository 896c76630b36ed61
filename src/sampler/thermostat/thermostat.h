/*
 * Common parts of the thermostat kernels: momenta and thermostats that persist between iterations,
 * in block->momentum and block->extra. Momenta are drawn again when the mass has changed.
 * Thermostats are drawn again only when the chain diverged, because they adapt slowly to the noise
 * of the gradient. All Local, but evaluations of the posterior are Collective over the ranks of a
 * group of shards.
 */
#pragma once

#include "base/memory.h"
#include "sampler/stochastic/stochastic.h"

#include <math.h>

/* Rows of the tables of options. */
#define EM_THERMOSTAT_MASS_FIELD(options, letter)                                                  \
    EM_REAL(options, thermostat_mass, .minimum = 1e-300, .maximum = 1e300, .fallback = "auto",     \
            .word = "auto", .doc = letter ", in squared units of time; auto: the dimension")
#define EM_THERMOSTAT_INTEGRATOR_FIELD(options)                                                    \
    EM_CHOICE(options, integrator, .fallback = "splitting", .choices = em_thermostat_integrators,  \
              .doc = "splitting (order 2) or euler (order 1)")
extern const char *const em_thermostat_integrators[];
enum { EM_THERMOSTAT_EULER, EM_THERMOSTAT_SPLITTING };

/* The mass of a thermostat, whose option may be auto. Local. */
static inline double em_thermostat_mass_of(double given, int64_t dim)
{
    return isnan(given) ? (double)dim : given;
}

/* The first member of each of these kernels; `options` begins with em_stochastic_options. */
typedef struct em_thermostat em_thermostat;
struct em_thermostat {
    em_sampler base;
    const em_stochastic_options *options;
    /* Draws the thermostats of chain c from their stationary distribution. */
    void (*draw)(em_thermostat *self, const em_step_context *context, em_block *block, int64_t c);
    /* The friction of chain c, for the statistics. */
    double (*friction)(const em_block *block, int64_t c);
    double *start;                   /* [n_chain][stride] positions at the start of the iteration */
    double *start_density, *product; /* [n_chain]; p^T W p of the last drift */
    double *work, *normals;          /* [n_chain][stride] */
    /* marked: `start` was stored in this iteration. looked: em_thermostat_move has set `finite`. A
     * gradient or momentum that is not finite has made the position not finite by then. */
    bool marked, looked;
    bool *finite; /* [n_chain] */
};

/* A part of a step, for a step that moves every coordinate independently. It is applied to one
 * coordinate block after another. self->product holds the values of the chains. */
typedef void em_thermostat_part(em_thermostat *self, const em_step_context *context,
                                em_block *block, int64_t k);

/* em_stochastic_stats, and the friction. */
extern const em_stat em_thermostat_stats[];

/* em_sampler_ops.set_up; a kernel sets `draw` and `friction` itself. */
em_status em_thermostat_set_up(em_sampler *sampler, int64_t n_chain, int64_t dim);

/* em_sampler_ops.n_extra of kernels whose only extra number of a chain is the thermostat. */
int64_t em_thermostat_n_extra(const void *options, int64_t dim);

/* em_sampler_ops.refresh: draws p ~ N(0, M) and, before the first iteration, the thermostats. */
em_status em_thermostat_refresh(em_sampler *sampler, const em_step_context *context,
                                em_block *block);

/* What these kernels have in common in their em_sampler_ops. */
#define EM_THERMOSTAT_OPS                                                                          \
    .stats = em_thermostat_stats, .refresh = em_thermostat_refresh, .minibatches = true

/* Stores the state at the start of an iteration. */
void em_thermostat_begin(em_thermostat *self, const em_block *block);

/* Begins an iteration, as em_thermostat_begin, of a kernel that moves its block by
 * em_thermostat_move alone. That function stores the positions. */
void em_thermostat_start(em_thermostat *self, const em_block *block);

/* Moves the block in inner step k. If all masses are diagonal, it moves one coordinate block after
 * another. */
void em_thermostat_move(em_thermostat *self, const em_step_context *context, em_block *block,
                        int64_t k, em_thermostat_part *part);

/* theta <- theta + h W p for all chains, where h is `fraction` of the step size; returns p^T W p
 * of each, which drives thermostats. Uses `work`. */
const double *em_thermostat_drift(em_thermostat *self, const em_step_context *context,
                                  em_block *block, double fraction);

/* Moves theta of a coordinate block, as em_thermostat_drift. Its p^T W p is added to that of the
 * coordinate blocks before it. */
void em_thermostat_add_drift(em_thermostat *self, const em_step_context *context, em_block *block,
                             double fraction);

/* Applies a friction `before`, the gradient and noise 2 a eps N(0, M), and a friction `after` to
 * p [n] of one chain. `noise` is N(0, M). */
void em_thermostat_kick(int64_t n, double eps, double a, double before, double after,
                        const double *g, em_product noise, double *p);

/* Writes the statistics em_thermostat_stats; lp is the estimate of the last minibatch. A chain is
 * diverging if its state is not finite, or if its kinetic energy is larger than an approach to the
 * posterior can explain. It is restored to its position at the start of the iteration, and its
 * momentum and thermostats are drawn again. */
void em_thermostat_end(em_thermostat *self, const em_step_context *context, em_block *block);
