/*
 * What draws are worth that several copies of a chain made by turns, as in parallel tempering. A
 * visit is what one copy gives between two times that it is drawn anew from a reference law. Draws
 * of a visit may all be in one mode; visits depend on each other little: two copies that are in one
 * mode take turns at the target. Neighbouring
 * draws are of different visits, so that their autocorrelation does not show how long a visit
 * lasts. All Local.
 */
#pragma once

#include "emass/status.h"

#include <stdint.h>

typedef struct em_visits em_visits;

/* visit [n_chain][n_draw]: the number of each draw's visit, which counts for its chain alone.
 * Errors: EM_EMEMORY. */
em_status em_visits_create(int64_t n_chain, int64_t n_draw, const double *visit, em_visits **out);
void em_visits_destroy(em_visits **visits); /* NULL-safe. */

/*
 * An effective sample size of draws x [n_chain][n_draw]: their variance over that of their mean.
 * The latter is that of the sum of visits, over the square of the number of draws: G / (G - 1)
 * times the sum over the G visits of S^2, with S the visit's sum of x less its mean, which is the
 * regenerative estimate of independent visits; plus the products of neighbouring S, with Bartlett's
 * weights up to a lag of twice the root of a chain's visits, 16 at most, where that makes it
 * larger. Draw `left_out` of each chain is not looked at; -1: all are. INFINITY, which bounds
 * nothing, where no chain has two visits, as where nothing is tempered, and for draws that are
 * equal or not finite.
 */
double em_visits_ess(em_visits *visits, const double *x, int64_t left_out);
