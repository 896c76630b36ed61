/*
 * Finds in pooled draws the parameters whose scale depends on another parameter, and the map
 * (posterior/noncentring.h) by which to non-centre them. Pure, Local.
 *
 * First come the groups whose priors are proved (scale_derivative.h). They are kept unless they
 * make the draws clearly less nearly normal. If their log scale hardly varies, they are kept only
 * if they make the draws more nearly normal.
 *
 * Others follow. If the scale of x_i is exp(a x_k), the scale of its derivative g_i is exp(-a x_k),
 * for any location. So log |g_i| is correlated with x_k, which identifies the pairs (i, k). The
 * parameters of one k form a group. It is fitted in two ways, of which the first decides whether
 * there is a group, and the second, where it holds, what its map is.
 *
 * 1. To the draws (noncentring_fit.c), by maximum likelihood:
 *
 *     x_i ~ N(m_i + sum_j b_ij x_j + c_i e^(a_i x_k), sigma_i^2 e^(2 a_i x_k)),
 *
 * where the term with c_i is not part of the map. The parameters x_j are chosen for the whole
 * group, one after the other, as long as the mean likelihood of a draw rises. A coefficient is set
 * to 1, as for the mean of a hierarchy, if that fits as well as a free one, because in the neck of
 * a funnel an error of the location would be large compared with the scale. A group is kept only if
 * it makes the draws more nearly normal.
 *
 * 2. To the derivatives (conditional_fit.c, mean_fit.c), by least squares. A parameter with a
 * normal prior of scale e^(a x_k) and normal data has a derivative that is linear in x_i and
 * e^(-2 a x_k) x_i. This is an identity and not a property of the draws. So it also shows the
 * members that are determined by their data in all draws, and it holds in the neck of a funnel,
 * which warmup has seldom seen. Without those members in the map, the neck is not reached, and no
 * diagnostic of the draws can tell.
 */
#pragma once

#include "adaptation/prior_proofs/scale_derivative.h"
#include "mass/estimator.h"
#include "posterior/noncentring.h"

/* The least target acceptance rate of chains in non-centred coordinates. */
#define EM_NONCENTRED_ACCEPT 0.9

/* Computes the rows [dim] of a map from draws and gradients; *n_child is the number of rows with a
 * level above 0. prior [dim]: those that are proved; NULL: none. may_join: members that are
 * distributed about each other may be mapped together. Errors: EM_EMEMORY. */
em_status em_noncentring_search(int64_t dim, const em_samples *samples,
                                const em_normal_prior *prior, bool may_join,
                                em_noncentring_row *row, int64_t *n_child);

/* Computes the rows of the proved priors alone that do not vary. samples: positions, which need not
 * be draws, and the gradients there, which tell how much data determine each member. Errors:
 * EM_EMEMORY. */
em_status em_noncentring_of_priors(int64_t dim, const em_samples *samples,
                                   const em_normal_prior *prior, em_noncentring_row *row,
                                   int64_t *n_child);

/* The same with more than EM_MOST_SEARCHED parameters, at draws: groups that do not make the draws
 * more nearly normal are left out, and further gradients tell how much data determine each member.
 * Local apart from the evaluations. Errors: EM_EMEMORY, those of the evaluations. */
em_status em_noncentring_of_many(int64_t dim, const em_samples *samples,
                                 const em_gradient_function *gradient, const em_normal_prior *prior,
                                 em_noncentring_row *row, int64_t *n_child);
