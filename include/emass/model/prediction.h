/*
 * Capability `prediction`: predictions for new data from the draws of a finished run, for emass
 * predict.
 *
 * Models with the capability rows (emass/model/rows.h) get predictions without further code.
 *
 * Example prediction:
 *     // y_i ~ normal(mu x_i, 1); new rows have x alone
 *     typedef struct { char *data; } options;
 *     static const em_field fields[] = {EM_PATH(options, data, .doc = "has x, and y"), {0}};
 *     typedef struct { em_model model; em_data *data; em_variable variable[2]; } line;
 *     static void destroy(em_model *model)
 *     {
 *         em_data_destroy(&((line *)model)->data);
 *         free(model);
 *     }
 *     static em_status create(const void *given, const em_model_context *context,
 *                             em_model **out)
 *     {
 *         line *self = calloc(1, sizeof *self);
 *         if (!self)
 *             return em_fail(EM_EMEMORY, "out of memory");
 *         const em_status status = em_data_read_all(((const options *)given)->data, &self->data);
 *         if (status) {
 *             free(self);
 *             return status;
 *         }
 *         self->variable[0] = (em_variable){.name = "mu"};
 *         self->variable[1] = (em_variable){.name = "y", .group = EM_PREDICTIONS, .n_axes = 1,
 *                                           .shape = {self->data->rows.total}};
 *         self->model = (em_model){.ops = context->ops, .dim = 1, .data_hash = self->data->hash,
 *                                  .n_variable = context->fitted ? 2 : 1,
 *                                  .variable = self->variable};
 *         *out = &self->model;
 *         return EM_OK;
 *     }
 *     static double at(em_model *model, int64_t i, const char *column)
 *     {
 *         const em_data *data = ((line *)model)->data;
 *         return data->value[i * data->n_column + em_data_column(data, column)];
 *     }
 *     static em_status add_prior(em_model *model, const em_query *query)
 *     {
 *         for (int64_t c = 0; c < query->n_chain; c++)
 *             for (int64_t i = 0; i < ((line *)model)->data->rows.total; i++) {
 *                 const double x = at(model, i, "x"), mu = query->theta[c * query->stride];
 *                 const double z = at(model, i, "y") - mu * x;
 *                 query->log_density[c] -= z * z / 2;
 *                 query->gradient[c * query->stride] += z * x;
 *             }
 *         return EM_OK;
 *     }
 *     static em_status predict(em_model *model, const em_draw *draw, const double *posterior,
 *                              double *out)
 *     {
 *         const int64_t n = ((line *)model)->data->rows.total;
 *         em_draw_normals(draw, 0, n, out);
 *         for (int64_t i = 0; i < n; i++)
 *             out[i] += posterior[0] * at(model, i, "x");
 *         return EM_OK;
 *     }
 *     EMASS_PLUGIN({.name = "prediction", .options_size = sizeof(options), .fields = fields,
 *                   .create = create, .destroy = destroy,
 *                   .add_prior = add_prior,
 *                   .prediction = &(const em_model_prediction){predict}});
 */
#pragma once

#include "emass/model.h"

EM_BEGIN_C

/* Functions that read arrays and labels from the file of a finished run. The results stay valid
 * until the model is destroyed. If the file has nothing of that name, *count is 0 and the array
 * NULL. Local. Errors: EM_EDATA. */
typedef struct em_fitted {
    void *context;
    /* An array of constant_data, which the model of the run stored (em_model.datum). */
    em_status (*numbers)(void *context, const char *name, int64_t *count, const double **value);
    /* The labels of an axis of the posterior or of an array of constant_data, made printable and
     * cut to 255 bytes. */
    em_status (*labels)(void *context, const char *axis, int64_t *count, const char *const **label);
} em_fitted;

/*
 * The model is created from the options of the run, with `data` replaced by the path of the new
 * data, and with em_model_context.fitted, from which it reads what it stored about the data of the
 * run (means, levels). Its variables of group EM_POSTERIOR are the inputs of `predict`, and those
 * of EM_PREDICTIONS the outputs. The density is not evaluated.
 */
typedef struct em_model_prediction {
    /* Gets the input variables of one draw in order, as they are in the file, and writes the output
     * variables in order. Random numbers and errors: as em_model_ops.report. Local. */
    em_status (*predict)(em_model *model, const em_draw *draw, const double *posterior,
                         double *out);
} em_model_prediction;

EM_END_C
