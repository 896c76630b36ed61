/* Assignment of rows to columns at the least total cost. */
#pragma once

#include "emass/status.h"

#include <stdint.h>

/* Finds the permutation column [n] that minimises the sum of cost[i][column[i]] over i, for a
 * square matrix cost [n][n]. The method is shortest augmenting paths (Jonker & Volgenant 1987), of
 * order n^3. Local. Errors: EM_EMEMORY. */
em_status em_assign(int64_t n, const double *cost, int64_t *column);
