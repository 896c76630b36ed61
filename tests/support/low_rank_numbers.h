/* Masses of low rank whose W is known (mass/mass.h). */
#pragma once

#include "mass/mass.h"

/* A standard normal number, counted by i. */
double some_normal(uint64_t seed, int64_t i);

/* Numbers of a mass of `rank` directions, of values 30, 0.05, 4, 30, ..., and its W [dim][dim],
 * written down from the formula; most_rank >= rank. */
void some_low_rank(uint64_t seed, int64_t dim, int64_t rank, int64_t most_rank, double *number,
                   double *w);
