/* Common parts of the regressions of counts. */
#pragma once

#include "model/regression/regression.h"

/* For em_model_build: sets up the em_regression of the counts in the table that the options name.
 * Errors: EM_EDATA, of responses that are no counts too; EM_EMEMORY. */
em_status em_count_regression_set_up(em_model *model, const em_regression_options *options,
                                     const em_model_context *context,
                                     const em_regression_plan *plan);

/* A Poisson count: recoverable, with a message, where the mean is too large for one. Local. */
em_status em_draw_count(em_variate *v, double mean, double *y);
