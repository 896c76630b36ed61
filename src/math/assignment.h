/* Optimal assignment of rows to columns at the least total cost. */
#ifndef EM_MATH_ASSIGNMENT_H
#define EM_MATH_ASSIGNMENT_H

#include "emass/status.h"

#include <stdint.h>

/* mate[i] = the column of row i, such that the sum of cost[i][mate[i]] over all rows of the square
 * matrix cost[n][n] is the least (shortest augmenting paths: Jonker & Volgenant 1987); of the order
 * of n^3. Local. Errors: EM_EMEMORY. */
em_status em_assign(int64_t n, const double *cost, int64_t *mate);

#endif
