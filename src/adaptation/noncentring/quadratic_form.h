/* Private to the folder: the members of a log scale (scale_derivative.c). All Local. */
#pragma once

#include "adaptation/noncentring/scale_test.h"

/* Adds the priors of the members of the tested scale to prior [dim], if M explains the differences
 * and has two members or more, or one with two log scales, which were in no group. Else the test of
 * the scale has failed. Errors: EM_EMEMORY. */
em_status em_add_members(const em_scale_test *test, em_normal_prior *prior);
