/*
 * Steep points: points of trajectories at which the gradient is far larger than at draws from a
 * normal distribution with the covariance that the mass describes. With the inverse mass W, g^T W g
 * is chi-squared there, with as many degrees of freedom as dimensions. A narrow mode inside of a
 * wide one has steep points. Trajectories of chains in the wide mode pass them, although the chains
 * may never accept a draw in the narrow mode.
 */
#pragma once

#include "base/memory.h"
#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

/* The steep points of chains first_chain .. first_chain + n_chain - 1. Of each trajectory the first
 * one counts, because later ones may be errors of the integrator. Of each chain the one with the
 * largest log density is kept. */
typedef struct em_steep_points {
    int64_t first_chain, n_chain, stride;
    double limit;        /* the largest g^T W g of a point that is not steep */
    double *theta;       /* [n_chain][stride] */
    double *log_density; /* [n_chain]; -infinity: none */
    bool *met;           /* [n_chain] the trajectory under way has had one */
} em_steep_points;

/* No chain has one. Local. Errors: EM_EMEMORY. */
em_status em_steep_points_create(em_owner *owner, int64_t first_chain, int64_t n_chain, int64_t dim,
                                 em_steep_points *out);

/* A trajectory of this chain begins. Local. */
static inline void em_steep_points_begin(em_steep_points *points, int64_t chain)
{
    points->met[chain - points->first_chain] = false;
}

/* Takes a point of the trajectory of this chain: theta [stride], with g^T W g in `square`. Local.
 */
void em_steep_points_take(em_steep_points *points, int64_t chain, double square, double log_density,
                          const double *theta);
