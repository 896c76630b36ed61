#include "model/model.h"

#include "base/default_message.h"
#include "base/memory.h"
#include "base/options/field.h"
#include "data/shard/shard_assignment.h"
#include "emass/capabilities.h"
#include "emass/data.h"
#include "emass/random.h"
#include "math/finite.h"
#include "model/bounds.h"
#include "model/external/failures.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct plain {
    em_model model;
    int64_t n;               /* numbers of a position on the scale of the parameters */
    em_variable theta;       /* if the model names no parameters */
    double *moved, *partial; /* [n]: a shifted position; a gradient */
    em_data *data;           /* of a model of rows, else NULL */
    int64_t column[EM_MOST_COLUMNS];
    double row[EM_MOST_COLUMNS];
    em_variable *variable; /* [n_parameter + 2] what a model of rows reports */
} plain;

static void plain_destroy(em_model *model)
{
    plain *self = (plain *)model;

    em_release_owner(&self->model.failures);
    em_data_destroy(&self->data);
    em_release_all(&self->variable, &self->moved, &self->partial, &self);
}

/* ---------------------------------------------------------------- rows of a table */

static em_status find_columns(plain *self, const char *path, bool predicts)
{
    const em_model_rows *rows = self->model.ops->rows;

    for (int64_t j = 0; j < rows->n_column; j++) {
        self->column[j] = em_data_column(self->data, rows->column[j]);
        if (self->column[j] < 0 && !(predicts && j == 0))
            return em_fail(EM_EDATA, "%s: found no column %s, which model %s needs", path,
                           rows->column[j], self->model.ops->name);
    }
    return EM_OK;
}

/* Declares the variables: the parameters, and for each row its log likelihood and a new response,
 * or a prediction. */
static em_status declare_rows(plain *self, bool predicts)
{
    const em_model_ops *ops = self->model.ops;
    const em_variable *parameter = ops->parameter ? ops->parameter : &self->theta;
    const int64_t n = ops->parameter ? ops->n_parameter : 1;
    em_variable row = {.name = ops->rows->column[0],
                       .sharded = true,
                       .n_axes = 1,
                       .shape = {self->data->rows.total}};
    em_status status = em_allocate(n + 2, sizeof *self->variable, &self->variable);

    if (status)
        return status;
    memcpy(self->variable, parameter, (size_t)n * sizeof *parameter);
    self->model.n_variable = n;
    if (!predicts) {
        row.group = EM_LOG_LIKELIHOOD;
        self->variable[self->model.n_variable++] = row;
    }
    if (ops->rows->draw) {
        row.group = predicts ? EM_PREDICTIONS : EM_POSTERIOR_PREDICTIVE;
        self->variable[self->model.n_variable++] = row;
    }
    self->model.variable = self->variable;
    return EM_OK;
}

static em_status open_rows(plain *self, const void *options, const em_model_context *context)
{
    const bool predicts = context->fitted != NULL;
    const em_field *field = em_field_find(self->model.ops->fields, "data");
    const char *path = *(char *const *)((const char *)options + field->offset);
    em_status status = em_data_read(path, context, &self->data);
    if (status)
        return status;
    self->model.rows = self->data->rows;
    self->model.data_hash = self->data->hash;
    status = find_columns(self, path, predicts);
    return status ? status : declare_rows(self, predicts);
}

/* Row i of this shard. */
static const double *row_at(plain *self, int64_t i)
{
    for (int64_t j = 0; j < self->model.ops->rows->n_column; j++)
        self->row[j] = self->column[j] < 0
                           ? NAN
                           : self->data->value[i * self->data->n_column + self->column[j]];
    return self->row;
}

static em_status add_rows(em_model *model, const em_query *query)
{
    plain *self = (plain *)model;

    for (int64_t c = 0; c < query->n_chain; c++)
        for (int64_t k = 0; k < query->rows.count; k++)
            model->ops->rows->add(model->options, query->theta + c * query->stride,
                                  row_at(self, em_row(&query->rows, k)), &query->log_density[c],
                                  query->gradient + c * query->stride);
    return EM_OK;
}

/* Draws a new response for each row; rows of other shards get -0.0. */
static void draw_rows(plain *self, const em_draw *draw, const double *theta, double *out)
{
    const em_model_rows *rows = self->model.ops->rows;
    const em_share *own = &self->data->rows;

    out = em_shard_clear(own, out);
    (rows->normal ? em_draw_normals : em_draw_uniforms)(draw, (uint64_t)own->first, own->count,
                                                        out);
    for (int64_t i = 0; i < own->count; i++)
        out[i] = rows->draw(self->model.options, theta, row_at(self, i), out[i]);
}

static em_status report_rows(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    plain *self = (plain *)model;
    const em_share *own = &self->data->rows;

    memcpy(out, theta, (size_t)self->n * sizeof *out);
    out += self->n;
    double *of_row = em_shard_clear(own, out);
    for (int64_t i = 0; i < own->count; i++) {
        of_row[i] = 0;
        model->ops->rows->add(model->options, theta, row_at(self, i), &of_row[i], self->partial);
    }
    if (model->ops->rows->draw)
        draw_rows(self, draw, theta, out + own->total);
    return EM_OK;
}

static em_status predict_rows(em_model *model, const em_draw *draw, const double *posterior,
                              double *out)
{
    draw_rows((plain *)model, draw, posterior, out);
    return EM_OK;
}

static const em_model_prediction prediction_of_rows = {.predict = predict_rows};

/* ---------------------------------------------------------------- a density of one position */

static em_status create_plain(const void *options, const em_model_context *context, em_model **out)
{
    const em_model_ops *ops = context->ops;
    const int64_t n = ops->parameter ? em_bounds_size(ops->n_parameter, ops->parameter) : ops->dim;
    plain *self;
    em_status status = em_allocate(1, sizeof *self, &self);

    if (status)
        return status;
    self->n = n;
    self->theta = (em_variable){.name = "theta", .n_axes = 1, .shape = {n}};
    self->model = (em_model){.ops = ops, .dim = ops->dim};
    if (!ops->parameter) {
        self->model.n_variable = 1;
        self->model.variable = &self->theta;
    }
    status = em_allocate_all(EM_ARRAY(self->moved, n), EM_ARRAY(self->partial, n));
    if (!status && ops->rows)
        status = open_rows(self, options, context);
    if (!status && ops->log_density && !ops->log_density_gradient) {
        self->model.gradient = EM_GRADIENT_DIFFERENCES;
        status = em_failures_create(context, &self->model.failures);
    }
    if (status)
        plain_destroy(&self->model);
    else
        *out = &self->model;
    return status;
}

/* Adds central differences. Steps are exactly representable and stay within bounds. If the density
 * on one side is missing or zero, the difference is one-sided. Returns false if that is so on both
 * sides. */
static bool add_differences(plain *self, const double *theta, double value, double *gradient)
{
    const em_model_ops *ops = self->model.ops;
    const double step = cbrt(DBL_EPSILON);
    double *moved = self->moved;

    memcpy(moved, theta, (size_t)self->n * sizeof *moved);
    for (int64_t i = 0; i < self->n; i++) {
        const double scale =
            fmin(step * fmax(1, fabs(theta[i])),
                 em_bounds_distance(ops->n_parameter, ops->parameter, i, theta[i]) / 2);
        const volatile double above = theta[i] + scale, below = theta[i] - scale;
        moved[i] = above;
        const double up = ops->log_density(self->model.options, moved);
        moved[i] = below;
        const double down = ops->log_density(self->model.options, moved);
        moved[i] = theta[i];
        if (!isfinite(up) && !isfinite(down))
            return false;
        gradient[i] += !isfinite(up)     ? (value - down) / (theta[i] - below)
                       : !isfinite(down) ? (up - value) / (above - theta[i])
                                         : (up - down) / (above - below);
    }
    return true;
}

/* Computes the log density, which is counted, and its differences; NaN after a failure. The
 * function may give the reason by em_fail. A position that is not finite after an overflow of a
 * transform is not evaluated and not counted. */
static double evaluate_counted(plain *self, int64_t chain, const double *theta, double *gradient)
{
    const uint64_t before = em_messages_set();

    if (!em_all_finite(self->n, theta))
        return NAN;
    const double value = self->model.ops->log_density(self->model.options, theta);
    const bool failed = isnan(value) || (gradient && isfinite(value) &&
                                         !add_differences(self, theta, value, gradient));
    em_failures_count_evaluation(self->model.failures, chain);
    if (failed)
        em_failures_add(self->model.failures, chain, self->n, theta,
                        em_messages_set() != before ? em_error_text()
                                                    : "the log density is not a number");
    return failed ? NAN : value;
}

/* Adds the log density. It becomes NaN where it is missing, because a status would concern the
 * whole block of chains. */
static em_status add_density(em_model *model, const em_query *query)
{
    plain *self = (plain *)model;
    const em_model_ops *ops = model->ops;

    for (int64_t c = 0; c < query->n_chain; c++) {
        const double *theta = query->theta + c * query->stride;
        double *gradient = query->gradient + c * query->stride;
        em_status status = EM_OK;
        double value = 0;
        if (ops->log_density_gradient) {
            memset(self->partial, 0, (size_t)self->n * sizeof *self->partial);
            const uint64_t before = em_messages_set();
            status = ops->log_density_gradient(model->options, theta, &value, self->partial);
            if (status < 0)
                return em_default_message(status, before, "log_density_gradient");
            for (int64_t i = 0; i < self->n; i++)
                gradient[i] += self->partial[i];
        } else if (ops->log_density) {
            value = evaluate_counted(self, query->chain ? query->chain[c] : c, theta,
                                     query->wanted == EM_WANT_LOG_DENSITY ? NULL : gradient);
        }
        query->log_density[c] += status > 0 ? NAN : value;
    }
    return EM_OK;
}

/* ---------------------------------------------------------------- what a table leaves out */

static em_status complete_rows(const char *path, em_model_ops *ops)
{
    const em_model_rows *rows = ops->rows;
    const em_field *data = em_field_find(ops->fields, "data");

    if (rows->n_column < 1 || rows->n_column > EM_MOST_COLUMNS || !rows->add)
        return em_fail(
            EM_ECONFIG,
            "%s: its capability `rows` has %lld columns, expected 1 to %d, and a function `add`",
            path, (long long)rows->n_column, EM_MOST_COLUMNS);
    if (!data || data->type != EM_FIELD_PATH)
        return em_fail(
            EM_ECONFIG,
            "%s: its model has the capability `rows`, which needs an option `data`, a path", path);
    ops->add_likelihood = add_rows;
    ops->report = report_rows;
    ops->prediction = rows->draw ? &prediction_of_rows : ops->prediction;
    return EM_OK;
}

/* Completes a model with a fixed number of parameters. */
static em_status complete_plain(const char *path, em_model_ops *ops)
{
    if (ops->dim < 1 && ops->n_parameter < 1)
        return em_fail(EM_ECONFIG, "%s: its model has dim %lld, expected at least 1", path,
                       (long long)ops->dim);
    if (ops->log_density && !ops->log_density_gradient && !ops->sampler)
        ops->sampler = "slice";
    ops->create = create_plain;
    ops->destroy = plain_destroy;
    if (!ops->add_prior && (ops->log_density_gradient || ops->log_density || ops->rows))
        ops->add_prior = add_density;
    return ops->rows ? complete_rows(path, ops) : EM_OK;
}

/* A required function that a capability lacks; NULL: none. */
static const char *lacking_function(const em_model_ops *ops)
{
    const em_model_ranges *r = ops->ranges;
    const em_model_summary *s = ops->summary;

    return r && !(r->estimate && r->gradient && r->publish) ? "ranges.estimate, gradient or publish"
           : r && r->estimate_part && !(r->gradient_of_parts && r->publish_part)
               ? "ranges.gradient_of_parts or publish_part"
           : r && !ops->minibatch                        ? "minibatch, which ranges need"
           : ops->minibatch && !ops->minibatch->estimate ? "minibatch.estimate"
           : s && !(s->add && s->take)                   ? "summary.add or take"
           : ops->averages && !ops->averages->report     ? "averages.report"
           : ops->metric && !ops->metric->add && !ops->metric->diagonal ? "metric.add, or diagonal"
           : ops->prediction && !ops->prediction->predict               ? "prediction.predict"
                                                                        : NULL;
}

em_status em_model_complete(const char *path, em_model_ops *ops)
{
    const bool is_plain = !ops->create && (ops->log_density_gradient || ops->log_density ||
                                           ops->dim > 0 || ops->n_parameter > 0);
    const em_status status = is_plain ? complete_plain(path, ops) : EM_OK;
    const bool has_update = ops->latent && ops->latent->update;
    const char *lacks = !ops->name || !*ops->name               ? "name"
                        : !ops->create                          ? "create, or a log_density"
                        : !ops->destroy                         ? "destroy"
                        : !ops->add_prior && !has_update        ? "add_prior, or an update"
                        : ops->fields && ops->options_size == 0 ? "options_size"
                                                                : lacking_function(ops);

    if (!status && lacks)
        return em_fail(EM_ECONFIG, "%s: its model has no %s", path, lacks);
    return status;
}
