/* Common parts of the regressions of counts. */
#ifndef EM_MODEL_REGRESSION_COUNT_REGRESSION_H
#define EM_MODEL_REGRESSION_COUNT_REGRESSION_H

#include "model/regression/regression.h"

/* Creates a regression of the counts in the table that the options name; the model is an
 * em_regression. Errors: EM_EDATA, of responses that are no counts too; EM_EMEMORY. */
em_status em_create_count_model(const em_regression_options *options,
                                const em_model_context *context, const em_regression_plan *plan,
                                em_model **out);

/* A Poisson count: recoverable, with a message, where the mean is too large for one. Local. */
em_status em_draw_count(em_variate *v, double mean, double *y);

#endif
