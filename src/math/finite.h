/* Numbers that are neither infinite nor NaN. Local. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether all `count` numbers are finite. */
bool em_all_finite(int64_t count, const double *x);
