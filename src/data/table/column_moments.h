/* Moments of the columns of a whole table; the same on all ranks. */
#pragma once

#include "data/table/table.h"

/* All [n_column]. */
typedef struct em_moments {
    double *smallest, *largest; /* of the entries that are there */
    int64_t *count;             /* of them; where a sparse row has none it is 0 */
    double *mean, *sd;          /* of all rows, divisor n - 1 */
} em_moments;

/* Finds the first three, and with `both` the others too, which have the same bits whoever holds
 * which rows. Collective. Errors, agreed: EM_EMEMORY; em_moments_release all the same. */
em_status em_moments_find(const em_table *table, bool both, em_moments *out);
void em_moments_release(em_moments *moments);

/* The sum of x over all ranks, n numbers on this one, with the same bits however they are
 * distributed. Collective. Errors, agreed: EM_EMEMORY. */
em_status em_sum_exactly(int64_t n, const double *x, double *sum);

/* Whether all values of a column are equal. Local. */
bool em_moments_constant(const em_table *table, const em_moments *moments, int64_t column);
