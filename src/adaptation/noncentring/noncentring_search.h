/*
 * Finds in pooled draws which parameters have a scale that depends on another parameter, and by
 * which map (posterior/noncentring.h) they are to be non-centred. Pure, local.
 *
 * Where the scale of x_i is exp(a x_k), that of the derivative by x_i is exp(-a x_k), whatever its
 * location is. So log |g_i| is correlated with x_k, and this names the pairs (i, k). Parameters of
 * one k make a group. Its location and its degrees are then fitted to the draws by likelihood,
 *
 *     x_i ~ N(m_i + sum_j b_ij x_j + c_i e^(a_i x_k), sigma_i^2 e^(2 a_i x_k)),
 *
 * where c_i is left to z. Locations are chosen for the whole group, one after the other, while the
 * mean likelihood of a draw rises; where a coefficient of 1 serves as well as free ones it is 1, as
 * that of a hierarchy's mean is: an error of the location would be large compared with the scale
 * in the neck of a funnel. A group is kept only if the draws are nearer to normal with it.
 */
#pragma once

#include "mass/estimator.h"
#include "posterior/noncentring.h"

/* Fewer draws, or fewer than two for each parameter, tell nothing. */
enum { EM_LEAST_NONCENTRING_DRAWS = 120 };

/* The rows [dim] of a map from draws and gradients; *n_child: how many have a level above 0.
 * Errors: EM_EMEMORY. */
em_status em_noncentring_search(int64_t dim, const em_samples *samples, em_noncentring_row *row,
                                int64_t *n_child);
