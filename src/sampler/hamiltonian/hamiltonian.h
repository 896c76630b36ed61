/*
 * The Hamiltonian H(theta, p) = -log p(theta) + p^T W p / 2 with W = M^-1, for kernels that follow
 * it: momenta, leapfrog steps, energies, U-turns. Points of phase space stand in the rows of panels
 * [n][stride]; beside p and g = grad log p a point carries v = W p and a = W g, so that a leapfrog
 * step takes one gradient and one product with W, and no further product for its velocity:
 *
 *     p <- p + eps/2 g,   v <- v + eps/2 a,   theta <- theta + eps v,
 *     g, a at the new theta,   p <- p + eps/2 g,   v <- v + eps/2 a.
 *
 * The numbers of a row depend neither on its place nor on the other rows. Everything here is Local,
 * except that the target may sum over shards.
 */
#pragma once

#include "sampler/kernel/sampler.h"

/* An energy error beyond which a trajectory is called divergent, as in Stan. */
#define EM_DIVERGENCE_LIMIT 1000.0

typedef struct em_points {
    int64_t n, dim, stride;
    int64_t *chain; /* [n] the number in the run of each row's chain */
    double *theta, *momentum, *velocity, *gradient, *acceleration; /* [n][stride], padding 0 */
    double *log_density;                                           /* [n] */
} em_points;

/* Errors: EM_EMEMORY. */
em_status em_points_create(int64_t n, int64_t dim, em_points *out);
void em_points_release(em_points *points); /* NULL members are fine. */

/* Row `to` of one becomes row `from` of the other, which may be the same. */
void em_points_copy(const em_points *source, int64_t from, em_points *posterior, int64_t to);

/* Rows 0 .. n_chain - 1 become where the chains of the block stand, with fresh p ~ N(0, M). */
void em_hamiltonian_refresh(const em_step_context *context, const em_block *block,
                            em_points *points);

/* One leapfrog step of rows 0 .. n - 1, each with its own mass and (signed) step size. Errors:
 * those of the target. */
em_status em_hamiltonian_leap(em_posterior *posterior, int64_t n, const em_mass *const *mass,
                              const double *step_size, em_points *points);

/* H of a row; plus infinity where it is not a number. */
double em_hamiltonian_energy(const em_points *points, int64_t row);

/* The acceptance probability of one leapfrog step from where each chain stands: `probe` of
 * em_sampler_ops, for samplers that keep points for at least their chains. */
em_status em_hamiltonian_probe(const em_step_context *context, const em_block *block,
                               em_points *points, double *acceptance);

/* A subtree: how many points, the sum of their momenta, and p and v at its two ends;
 * [stride] each. */
typedef struct em_subtree {
    int64_t n;
    double *sum, *momentum[2], *velocity[2];
} em_subtree;

/* Whether two subtrees turn back when end 1 - far_a of a and end 1 - far_b of b are neighbours:
 * some end of the whole does not go along with its sum; or, Stan's further checks, of one subtree
 * with the nearest point of the other. */
bool em_subtrees_turn(int64_t stride, const em_subtree *a, int far_a, const em_subtree *b,
                      int far_b);

/* Chain c of the block moves to a row. */
void em_hamiltonian_move(const em_points *points, int64_t row, em_block *block, int64_t c);

/* Draws the number of steps of an iteration's trajectories uniformly from 1 to 2 mean - 1, because
 * a fixed length can be resonant. All chains share it, so that they stay in step; it does not
 * depend on their positions. */

/* The row of the option `jitter` of `type`, which asks for it. */
#define EM_JITTER_FIELD(type)                                                                      \
    EM_BOOL(type, jitter, .fallback = "true",                                                      \
            .doc = "draw the number of steps uniformly from 1 to 2 leapfrog_steps - 1")

/* The number of steps: `mean` itself without jitter. Local. */
int64_t em_draw_length(const em_step_context *context, int64_t mean, bool jitter);
