/*
 * Momenta, leapfrog steps, energies and U-turns for kernels that simulate the Hamiltonian H(theta,
 * p) = -log p(theta) + p^T W p / 2 with W = M^-1. Points of phase space are rows of panels
 * [n][stride]. A point holds p and g = grad log p, and also v = W p and a = W g. A leapfrog step
 * then needs one gradient and one product with W:
 *
 *     p <- p + eps/2 g,   v <- v + eps/2 a,   theta <- theta + eps v,
 *     g, a at the new theta,   p <- p + eps/2 g,   v <- v + eps/2 a.
 *
 * The results of a row depend neither on its index nor on the other rows. All functions are Local,
 * but evaluations of the posterior are Collective over the ranks of a group of shards.
 */
#pragma once

#include "sampler/hamiltonian/splitting.h"
#include "sampler/kernel/sampler.h"

#include <string.h>

/* An energy error beyond which a trajectory is called divergent, as in Stan. */
#define EM_DIVERGENCE_LIMIT 1000.0

typedef struct em_points {
    int64_t n, dim, stride;
    int64_t *chain; /* [n] the number, in the run, of the chain of each row */
    double *theta, *momentum, *velocity, *gradient, *acceleration; /* [n][stride], padding 0 */
    double *log_density;                                           /* [n] */
    em_steep_points *steep; /* of the trajectories under way; NULL: they are not noted */
} em_points;

/* Copies a row of a panel. */
static inline void em_copy_row(int64_t stride, const double *from, double *to)
{
    memcpy(to, from, (size_t)stride * sizeof *to);
}

/* Errors: EM_EMEMORY. */
em_status em_points_create(em_owner *owner, int64_t n, int64_t dim, em_points *out);

/* Copies row `from` of source to row `to` of target. Both may be the same panel. */
void em_points_copy(const em_points *source, int64_t from, em_points *target, int64_t to);

/* Sets rows 0 .. n_chain - 1 to the positions of the chains of the block and draws their momenta p
 * ~ N(0, M). */
void em_hamiltonian_refresh(const em_step_context *context, const em_block *block,
                            em_points *points);

/* Stage number `stage` (from 0) of a step of rows 0 .. n - 1, with one gradient; each row has its
 * own mass, and step_size [n] for all stages together. A negative step size goes backward in time.
 * Errors: those of em_posterior_evaluate. */
em_status em_hamiltonian_stage(em_posterior *posterior, int64_t n, const em_mass *const *mass,
                               const em_splitting *splitting, int stage, const double *step_size,
                               em_points *points);

/* One leapfrog step, likewise. */
static inline em_status em_hamiltonian_leap(em_posterior *posterior, int64_t n,
                                            const em_mass *const *mass, const double *step_size,
                                            em_points *points)
{
    return em_hamiltonian_stage(posterior, n, mass, &em_leapfrog, 0, step_size, points);
}

/* H of a row; plus infinity instead of NaN. */
double em_hamiltonian_energy(const em_points *points, int64_t row);

/* Whether the evaluation at a row failed (model/external/failures.h): the log density is NaN, and
 * the model can fail. This ends a trajectory and rejects it. It is no divergence, as it says
 * nothing about the step size. */
bool em_hamiltonian_failed(const em_posterior *posterior, const em_points *points, int64_t row);

/* acceptance [n_chain]: the acceptance probability of one leapfrog step from the position of each
 * chain. It implements em_sampler_ops.probe for samplers whose `points` have a row for each chain.
 */
em_status em_hamiltonian_probe(const em_step_context *context, const em_block *block,
                               em_points *points, double *acceptance);

/* A subtree of a trajectory: its number of points, the sum of their momenta, and p and v at its two
 * ends; vectors [stride]. */
typedef struct em_subtree {
    int64_t n;
    double *sum, *momentum[2], *velocity[2];
} em_subtree;

/* Whether the union of two adjacent subtrees makes a U-turn; end 1 - far_a of a is next to end 0 of
 * b. It does if the velocity at one of its two ends has an inner product with the sum of
 * its momenta that is not positive. As in Stan, the same is also checked for each subtree with the
 * nearest point of the other. */
bool em_subtrees_turn(int64_t stride, const em_subtree *a, int far_a, const em_subtree *b);

/* Sets position, momentum, gradient and log density of chain c of the block to those of a row. */
void em_hamiltonian_move(const em_points *points, int64_t row, em_block *block, int64_t c);

/* The number of steps of an iteration's trajectories is uniform on 1 .. 2 mean - 1, because a fixed
 * length can resonate with a period of the dynamics. All chains share it, so that their gradients
 * are evaluated together. It does not depend on their positions. */

/* The row of the option `jitter` in the field table of `type`. */
#define EM_JITTER_FIELD(type)                                                                      \
    EM_BOOL(type, jitter, .fallback = "true",                                                      \
            .doc = "draw the number of steps uniformly from 1 to 2 leapfrog_steps - 1")

/* The number of steps of this iteration; `mean` itself without jitter. Local. */
int64_t em_draw_length(const em_step_context *context, int64_t mean, bool jitter);
