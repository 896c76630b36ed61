/* A broken twin of a mass: its momenta are drawn from another one. */
#ifndef TESTS_SUPPORT_TWIN_MASS_H
#define TESTS_SUPPORT_TWIN_MASS_H

#include "support/kernel_bench.h"

typedef struct twin_mass {
    em_mass base;
    const em_mass *good, *other;
} twin_mass;

void twin_of(const em_mass *good, const em_mass *other, twin_mass *twin);

/* law_worst_z on law_of_three, with momenta drawn from `other`, or (NULL) from the mass itself.
 * Takes both masses. */
double twin_worst_z(em_grid *grid, kernel_run run, em_mass *good, em_mass *other, visited *moves);

/* Of masses in three dimensions, unlike law_of_three. */
extern const double dense_of_3[9], diag_of_3[3];

/* The mass of which W is `factor` times that of the array. */
em_mass *multiple_of(em_structure structure, int64_t dim, const double *inverse, double factor);

/* In three dimensions, of low rank: one direction (1, 1, 1) of variance `value` (1: none). */
em_mass *low_rank_of_3(double value);

/* In three dimensions, in two blocks. */
em_mass *blocks_of_3(double factor);

#endif
