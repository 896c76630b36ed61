/* Detects numbers whose draws keep growing, as those of a parameter without a prior about which the
 * data have no information: the posterior may be improper. Local. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether draws [n_chain][n_draw] have a mean size of 1e10 or more, or one that grows through the
 * run: from each quarter of the draws to the next, to three times what it was or more, and to 10 or
 * more. That says
 * something only of a number whose R-hat is above its limit. False of fewer than 16 draws.
 */
bool em_grows(int64_t n_chain, int64_t n_draw, const double *draws);
