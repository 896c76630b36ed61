/* Private to the room: the criterion of the Fisher divergence, for matrices and for directions. */
#pragma once

#include "mass/estimator.h"

/* Doubles of work space that em_fisher_mean takes. */
static inline int64_t em_fisher_mean_work(int64_t n)
{
    return 4 * n * n + 2 * n;
}

/* The positive definite W of W C_g W = C_x, [n][n] each; C_g is overwritten. Errors: EM_NONFINITE
 * where a covariance is not positive definite; EM_EMEMORY, EM_ENUMERIC. */
em_status em_fisher_mean(int64_t n, const double *cx, double *cg, double *work, double *out);

/* add_directions of the estimator (mass/fisher_low_rank.c). */
em_status em_fisher_directions(const em_mass_form *form, const double *current, em_samples *samples,
                               double *number);
