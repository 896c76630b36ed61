/*
 * What draws are worth that several copies of a chain made by turns, as in parallel tempering. A
 * visit is what one copy gives between two times that it is drawn anew from a reference law. Draws
 * of a visit may all be in one mode; visits are independent of each other, about. Neighbouring
 * draws are of different visits, so that their autocorrelation does not show how long a visit
 * lasts. All Local.
 */
#ifndef EM_DIAGNOSTICS_VISITS_H
#define EM_DIAGNOSTICS_VISITS_H

#include "emass/status.h"

#include <stdint.h>

typedef struct em_visits em_visits;

/* visit [n_chain][n_draw]: the number of each draw's visit, which counts for its chain alone.
 * Errors: EM_EMEMORY. */
em_status em_visits_create(int64_t n_chain, int64_t n_draw, const double *visit, em_visits **out);
void em_visits_destroy(em_visits **visits); /* NULL-safe. */

/*
 * An effective sample size of draws x [n_chain][n_draw]: their variance over that of their mean,
 * which is G / (G - 1) times the sum over the G visits of (the visit's sum of x less its mean)^2,
 * over the square of the number of draws: the regenerative estimate, visits being independent.
 * Draw `left_out` of each chain is not looked at; -1: all are. INFINITY, which bounds nothing,
 * where no chain has two visits, as where nothing is tempered, and for draws that are equal or not
 * finite.
 */
double em_visits_ess(em_visits *visits, const double *x, int64_t left_out);

#endif
