/* Detects numbers whose draws keep growing, which suggests an improper posterior: for example a
 * parameter without a prior about which the data have no information. Local. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether the mean absolute value of draws [n_chain][n_draw] is 1e10 or more, or grows during the
 * run: at least by a factor of three from each quarter of the draws to the next, and to at least
 * 10. The result is meaningful only for a number whose R-hat is above its limit. False for fewer
 * than 16 draws.
 */
bool em_grows(int64_t n_chain, int64_t n_draw, const double *draws);
