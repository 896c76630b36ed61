/*
 * The criterion of the trajectory-length search. It uses the lag-1 autocorrelation of every
 * coordinate, pooled over the chains by summing. While some coordinate's autocorrelation is high, a
 * trajectory 1.7 times as long is tried. It is kept where it is efficient enough. All Local.
 */
#ifndef EM_ADAPTATION_TRAJECTORY_TRAJECTORY_CRITERION_H
#define EM_ADAPTATION_TRAJECTORY_TRAJECTORY_CRITERION_H

#include <stdbool.h>
#include <stdint.h>

/* Sums of one chain: leapfrog steps, then of every coordinate x, x^2, x_t x_t-1, the first x and
 * the last. */
int64_t em_lag_size(int64_t dim);

/* Adds iteration number `iteration` (from 0) of a phase: position x [dim] from any centre. */
void em_lag_observe(int64_t dim, const double *x, double n_steps, int64_t iteration, double *sums);

/* From the pooled sums of n_chain chains x length iterations: the autocorrelation r [dim], and the
 * mean number of leapfrog steps. */
void em_lag_estimate(int64_t dim, double n_chain, double length, const double *pooled, double *r,
                     double *n_steps);

/* The largest r is above 0.6. */
bool em_lag_is_long(int64_t dim, const double *r);

/*
 * Whether the longer trajectories are at least 0.85 as efficient as the shorter ones, by (1 - r) /
 * (1 + r) / n_steps of the worst coordinate, or of the geometric mean over those that are among the
 * worst (up to three) of either. `scratch`: [2 dim].
 */
bool em_trajectory_is_better(int64_t dim, const double *r_short, double steps_short,
                             const double *r_long, double steps_long, double *scratch);

#endif
