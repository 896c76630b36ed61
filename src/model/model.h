/*
 * A model as the rest of emass calls it: defaults stand for what its author omitted, and bounded
 * parameters are transformed. `theta` is on the unconstrained scale. What has no function here is
 * called through the model's table.
 */
#pragma once

#include "emass/model.h"

/* Fills in what the table of a model leaves out, as emass/model.h says. Local. Errors: EM_ECONFIG,
 * with `path`, where it came from, where something is missing that nothing stands for. */
em_status em_model_complete(const char *path, em_model_ops *ops);

/* Creates a model of a table that em_model_complete has seen, or of a built-in one. Collective, as
 * em_model_ops.create. Errors: the model's, not agreed; EM_EMODEL, a model that contradicts itself;
 * EM_EMEMORY. */
em_status em_model_create(const em_model_ops *ops, const void *options,
                          const em_model_context *context, em_model **out);
void em_model_destroy(em_model **model); /* NULL-safe. Local. */

/* As the functions of em_model_ops and of its capabilities prior and averages. */
em_status em_model_add_prior(em_model *model, const em_query *query);
em_status em_model_add_likelihood(em_model *model, const em_query *query);
em_status em_model_report(em_model *model, const em_draw *draw, const double *theta, double *out);
em_status em_model_start(em_model *model, const em_draw *draw, double *theta);
em_status em_model_draw_prior(em_model *model, const em_draw *draw, double *theta);
void em_model_average(em_model *model, const em_draw *draw, const double *theta);

/* Why a model first had no density, on this rank, as far as it has said so; "". Local. */
const char *em_model_why(const em_model *model);
