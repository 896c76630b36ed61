/*
 * The Nose-Poincare flow, for a block of chains in lockstep. With U = -log p, W = M^-1 and g = grad
 * log p, it preserves
 *
 *     H = s (U + p^T W p / (2 s^2) + q^2 / (2 Q) + D ln s - H_0),
 *
 * where H_0 is the energy at s = 1, so that H = 0; on that shell p / s is N(0, M) and theta follows
 * exp(-U). Generalised leapfrog (Bond, Leimkuhler & Laird 1999; EQUATIONS 11), of order 2,
 * reversible and volume preserving. All Local.
 */
#pragma once

#include "sampler/kernel/sampler.h"

/* Where the chains are on their trajectories; panels [n_chain][stride], vectors [n_chain]. */
typedef struct em_nose_poincare {
    int64_t n_chain, dim, stride;
    double friction, q_friction; /* B = friction M, and A, of the printed SG-NPHMC; else 0 */
    double *theta, *momentum, *gradient, *velocity;
    double *log_density, *s, *q, *h0, *kinetic;
    double *Q; /* mass of the thermostats q */
} em_nose_poincare;

/* The same Q for all chains, to begin with. Errors: EM_EMEMORY. */
em_status em_nose_poincare_create(int64_t n_chain, int64_t dim, double thermostat_mass,
                                  em_nose_poincare **out);
void em_nose_poincare_destroy(em_nose_poincare **flow);

/* From where the chains stand: s = 1, p ~ N(0, M), q ~ N(0, Q), and H_0 from the block's log
 * density. */
void em_nose_poincare_start(em_nose_poincare *flow, const em_step_context *context,
                            const em_block *block);

/* What is asked of the posterior where the trajectories stand, chain[n_chain] being their numbers.
 */
em_query em_nose_poincare_query(const em_nose_poincare *flow, const int64_t *chain);

/* Half a step of p and q, a step of s and theta; then the caller asks for log_density and gradient
 * at the new theta; then the other half. What cannot be solved becomes NaN. */
void em_nose_poincare_advance(em_nose_poincare *flow, const em_step_context *context);
void em_nose_poincare_finish(em_nose_poincare *flow, const em_step_context *context);

/* energy[c] = H, 0 but for the error of the integrator. */
void em_nose_poincare_energy(em_nose_poincare *flow, const em_step_context *context,
                             double *energy);

/* Ends the trajectories: theta, its density and gradient, the momentum p / s, and (s, q / Q) as
 * extra numbers go to the block, but for chains that are not finite, which are diverging and stay
 * where they were. Fills the statistics of em_nose_poincare_stats. */
extern const em_stat em_nose_poincare_stats[];
void em_nose_poincare_store(em_nose_poincare *flow, const em_step_context *context, int64_t n_step,
                            em_block *block);
