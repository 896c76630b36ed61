/*
 * The mass of the part of the posterior that draws are from: the integral of the unnormalised
 * density over that part, estimated from the draws alone.
 *
 * Its logarithm is the mean of the log density plus the entropy of the draws. The entropy is at
 * most that of a normal distribution with the covariance of the draws, which is used. So the
 * estimate is an upper bound, apart from its Monte Carlo error.
 */
#pragma once

#include "emass/status.h"
#include "par/grid.h"

#include <stdint.h>

/* A part of the posterior without draws is missed if the log ratio of its mass to that of the part
 * with draws exceeds this: about 1 to 20. A run that misses a part has not converged. */
#define EM_MISSED_LOG_MASS_LIMIT (-3.0)

/* The number of sums for draws of `dim` numbers. Local. */
int64_t em_draw_mass_size(int64_t dim);

/* Adds a draw to sums [em_draw_mass_size]. `centre` [dim] is near to the draws, and the same for
 * all. Local. */
void em_draw_mass_add(double *sums, int64_t dim, const double *centre, const double *theta,
                      double log_density);

/* The mass from the sums of all chains; `sums` is [n_local_chain][em_draw_mass_size]. *n: the
 * number of draws. *log_mass -infinity: no draw; infinity: too few. Collective. Errors: EM_EMEMORY,
 * agreed. */
em_status em_draw_mass_estimate(em_grid *grid, int64_t dim, const double *sums, double *n,
                                double *log_mass);
