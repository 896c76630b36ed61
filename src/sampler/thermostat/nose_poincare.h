/*
 * The Nose-Poincare flow of a block of chains, which advance together. With U = -log p, W = M^-1
 * and g = grad log p, it preserves
 *
 *     H = s (U + p^T W p / (2 s^2) + q^2 / (2 Q) + D ln s - H_0),
 *
 * where H_0 is the energy at s = 1, so that H = 0. On the shell H = 0, p / s is N(0, M) and theta
 * has the density exp(-U). The integrator is generalised leapfrog (Bond, Leimkuhler & Laird 1999;
 * EQUATIONS 11): of order 2, reversible and volume preserving. All Local.
 */
#pragma once

#include "sampler/kernel/sampler.h"

/* The state of the chains on their trajectories: panels [n_chain][stride], vectors [n_chain]. */
typedef struct em_nose_poincare {
    int64_t n_chain, dim, stride;
    double friction,
        q_friction; /* of SG-NPHMC as printed: B = friction M, A = q_friction; else 0 */
    double *theta, *momentum, *gradient, *velocity;
    double *log_density, *s, *q, *h0, *kinetic;
    double *Q; /* mass of the thermostats q */
} em_nose_poincare;

/* em_sampler_ops.n_extra: s (or its logarithm) and q / Q, as an iteration left them. */
int64_t em_nose_poincare_n_extra(const void *options, int64_t dim);

/* Creates a flow whose chains all have Q = thermostat_mass at first. Errors: EM_EMEMORY. */
em_status em_nose_poincare_create(em_owner *owner, int64_t n_chain, int64_t dim,
                                  double thermostat_mass, em_nose_poincare **out);

/* Starts a trajectory at the position of each chain: s = 1, p ~ N(0, M), q ~ N(0, Q), and H_0 from
 * the block's log density. */
void em_nose_poincare_start(em_nose_poincare *flow, const em_step_context *context,
                            const em_block *block);

/* A query for log density and gradient at the current positions; chain [n_chain] has the numbers of
 * the chains. */
em_query em_nose_poincare_query(const em_nose_poincare *flow, const int64_t *chain);

/* One step of the integrator. em_nose_poincare_advance does half a step of p and q and a step of s
 * and theta. Then the caller evaluates log_density and gradient at the new theta.
 * em_nose_poincare_finish does the other half step. A state whose implicit equations have no
 * solution becomes NaN. */
void em_nose_poincare_advance(em_nose_poincare *flow, const em_step_context *context);
void em_nose_poincare_finish(em_nose_poincare *flow, const em_step_context *context);

/* energy[c] = H, which is 0 up to the error of the integrator. */
void em_nose_poincare_energy(em_nose_poincare *flow, const em_step_context *context,
                             double *energy);

/* Ends the trajectories. Copies theta, its log density and gradient, the momentum p / s, and (s, q
 * / Q) as extra numbers to the block. A chain whose state is not finite is marked as diverging and
 * keeps its old state. Writes the statistics em_nose_poincare_stats. */
extern const em_stat em_nose_poincare_stats[];
void em_nose_poincare_store(em_nose_poincare *flow, const em_step_context *context, int64_t n_step,
                            em_block *block);
