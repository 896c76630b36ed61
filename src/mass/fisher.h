/* Private to this folder: the criterion of the Fisher divergence, for matrices and for directions.
 */
#pragma once

#include "mass/estimator.h"

/* The size of the work space of em_fisher_mean, in doubles. */
static inline int64_t em_fisher_mean_work(int64_t n)
{
    return 4 * n * n + 2 * n;
}

/* Solves W C_g W = C_x for the positive definite W; all matrices are [n][n], and C_g is
 * overwritten. Errors: EM_NONFINITE if a covariance is not positive definite; EM_EMEMORY,
 * EM_ENUMERIC. */
em_status em_fisher_mean(int64_t n, const double *cx, double *cg, double *work, double *out);

/* em_estimator_ops.add_directions of the estimator `fisher` (mass/fisher_low_rank.c). */
em_status em_fisher_directions(const em_mass_form *form, const double *current, em_samples *samples,
                               double *number);
