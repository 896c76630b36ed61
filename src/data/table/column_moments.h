/* Moments of the columns of a whole table; the same on all ranks. */
#pragma once

#include "data/table/table.h"

/* All [n_column]. */
typedef struct em_moments {
    double *smallest, *largest; /* of the entries that are there */
    int64_t *count;             /* number of values; a sparse row without an entry counts as 0 */
    double *mean, *sd;          /* of all rows, divisor n - 1 */
} em_moments;

/* Computes the first three members, and with `both` also the others. The bits do not depend on the
 * distribution of the rows. Collective. Errors, agreed: EM_EMEMORY; then also call
 * em_moments_release. */
em_status em_moments_find(const em_table *table, bool both, em_moments *out);
void em_moments_release(em_moments *moments);

/* The sum of x over all ranks, n numbers on this rank. The bits do not depend on their
 * distribution. Collective. Errors, agreed: EM_EMEMORY. */
em_status em_sum_exactly(int64_t n, const double *x, double *sum);

/* Whether all values of a column are equal. Local. */
bool em_moments_constant(const em_table *table, const em_moments *moments, int64_t column);
