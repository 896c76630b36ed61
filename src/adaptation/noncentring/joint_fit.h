/*
 * Private to the folder: members of proved groups that are distributed about each other, as in a
 * random walk or a trend. They are mapped together (posterior/joint_block.h). All Local.
 */
#pragma once

#include "adaptation/noncentring/noncentring_fit.h"
#include "adaptation/prior_proofs/scale_derivative.h"

/*
 * Writes to row [dim], the rows of a map, those of the members whose location is another member,
 * and of these; *n is their number. Without the derivatives of all proved priors, those of a member
 * are due to data. The precision of its data is the slope of a regression on all parameters.
 * Errors: EM_EMEMORY; EM_NONFINITE if the Gram matrix is singular.
 */
em_status em_fit_block(em_group_search *s, const em_normal_prior *prior, em_noncentring_row *row,
                       int64_t *n);
