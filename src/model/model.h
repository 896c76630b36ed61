/*
 * The interface by which the rest of emass calls a model. It adds defaults for functions that the
 * author omitted, and transforms bounded parameters; `theta` is on the unconstrained scale. Other
 * functions are called through the model's table.
 */
#pragma once

#include "emass/model.h"

/* Fills in the defaults of emass/model.h in the table of a model. Local. Errors: EM_ECONFIG if a
 * function without a default is missing; the message names `path`, the source of the model. */
em_status em_model_complete(const char *path, em_model_ops *ops);

/* Creates a model from a table that is complete: after em_model_complete, or of a built-in model.
 * Collective, as em_model_ops.create. Errors: the model's, not agreed; EM_EMODEL where fields of
 * the model contradict one another; EM_EMEMORY. */
em_status em_model_create(const em_model_ops *ops, const void *options,
                          const em_model_context *context, em_model **out);
void em_model_destroy(em_model **model); /* NULL-safe. Local. */

/* Call the functions of em_model_ops and of its capabilities prior and averages. */
em_status em_model_add_prior(em_model *model, const em_query *query);
em_status em_model_add_likelihood(em_model *model, const em_query *query);
em_status em_model_report(em_model *model, const em_draw *draw, const double *theta, double *out);
em_status em_model_start(em_model *model, const em_draw *draw, double *theta);
em_status em_model_draw_prior(em_model *model, const em_draw *draw, double *theta);
void em_model_average(em_model *model, const em_draw *draw, const double *theta);

/* The message of the first rejection on this rank; "": none. Local. */
const char *em_model_why(const em_model *model);
