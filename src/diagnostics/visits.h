/*
 * The effective sample size of draws from copies of a chain that alternate at the target, as in
 * parallel tempering. A visit is the set of draws of one copy between two draws from a reference.
 * The draws of a visit may all be in one mode, whereas visits depend little on each other.
 * Neighbouring draws are of different visits, so their autocorrelation does not show the length of
 * a visit. All Local.
 */
#pragma once

#include "emass/status.h"

#include <stdint.h>

typedef struct em_visits em_visits;

/* visit [n_chain][n_draw]: the index of each draw's visit in its chain. Freed by
 * em_release_owner. Errors: EM_EMEMORY. */
em_status em_visits_create(int64_t n_chain, int64_t n_draw, const double *visit, em_visits **out);

/*
 * The effective sample size of draws x [n_chain][n_draw]: their variance over that of their mean.
 * The latter is the variance of the sum over visits, divided by the square of the number of draws.
 * With S the sum over a visit of x minus its mean, it is G / (G - 1) times the sum of S^2 over the
 * G visits: the regenerative estimate for independent visits. If it makes the variance larger,
 * products of neighbouring S are added, with Bartlett's weights up to a lag of twice the square
 * root of the number of a chain's visits, at most 16. Draw `left_out` of each chain is ignored; -1:
 * none is. The result is INFINITY (no bound) if no chain has two visits, as without tempering, and
 * for draws that are equal or not finite.
 */
double em_visits_ess(em_visits *visits, const double *x, int64_t left_out);
