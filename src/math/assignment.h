/* Optimal assignment of rows to columns at the least total cost. */
#pragma once

#include "emass/status.h"

#include <stdint.h>

/* column[i] is the column of row i that minimises the sum of cost[i][column[i]] over the square
 * matrix cost[n][n] (shortest augmenting paths: Jonker & Volgenant 1987), in time of order n^3.
 * Local. Errors: EM_EMEMORY. */
em_status em_assign(int64_t n, const double *cost, int64_t *column);
