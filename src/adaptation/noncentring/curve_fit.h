/*
 * Finds from draws and gradients the parameters whose location is a curved function of others
 * (posterior/noncentring.h, EM_SCALE_CONSTANT), and their rows of the map. The density is then
 * bent, as a banana is. No constant mass suits it, and chains seldom enter its ends.
 *
 * If x_i is normal, given all others, with a location f that is quadratic and a constant variance
 * 1 / A, then its derivative is
 *
 *     g_i = -A (x_i - f(x)).
 *
 * This is an identity and not a property of the draws, so it holds where no draw has been. It is
 * accepted only if it leaves nothing but rounding unexplained. A location that is linear in members
 * of a log scale is curved too, because these are not linear in non-centred coordinates. Pure,
 * Local.
 */
#pragma once

#include "adaptation/prior_proofs/scale_derivative.h"

/* Sets in row [dim], the identity, the rows of parameters whose location is curved. prior [dim]:
 * those that are proved, whose parameters will be non-centred; NULL: none. Does nothing if the
 * draws do not suffice. Errors: EM_EMEMORY. */
em_status em_curve_fit(int64_t dim, const em_samples *samples, const em_normal_prior *prior,
                       em_noncentring_row *row);
