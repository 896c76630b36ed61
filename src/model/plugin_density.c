#include "model/plugin_density.h"

#include "base/default_message.h"
#include "base/memory.h"
#include "emass/model/latent.h"
#include "par/world.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct density {
    em_model model;
    const void *options;
    em_variable theta;       /* where the model names no variables */
    double *moved, *partial; /* [dim]: a position beside the one asked for; its gradient */
} density;

static void density_destroy(em_model *model)
{
    density *self = (density *)model;

    em_release(&self->moved);
    em_release(&self->partial);
    em_release(&self);
}

static em_status density_create(const void *options, const em_model_context *context,
                                em_model **out)
{
    const em_model_ops *ops = context->ops;
    density *self = NULL;
    em_status status = em_allocate(1, sizeof *self, &self);

    *out = NULL;
    if (!status)
        status = em_allocate(ops->dim, sizeof *self->moved, &self->moved);
    if (!status)
        status = em_allocate(ops->dim, sizeof *self->partial, &self->partial);
    if (status) {
        if (self)
            density_destroy(&self->model);
        return status;
    }
    if (!ops->log_density_gradient)
        em_say("warning: model %s gives no gradient: central differences take %lld densities for "
               "each",
               ops->name, (long long)(2 * ops->dim));
    self->options = ops->fields ? options : ops->state;
    self->theta = (em_variable){.name = "theta", .n_axes = 1, .shape = {ops->dim}};
    self->model = (em_model){.ops = ops,
                             .dim = ops->dim,
                             .n_variable = ops->variable ? ops->n_variable : 1,
                             .variable = ops->variable ? ops->variable : &self->theta};
    *out = &self->model;
    return EM_OK;
}

/* Central differences, of steps that are the numbers they are meant to be. */
static void add_differences(density *self, const double *theta, double *gradient)
{
    const em_model_ops *ops = self->model.ops;
    const double step = cbrt(DBL_EPSILON);
    double *moved = self->moved;

    memcpy(moved, theta, (size_t)ops->dim * sizeof *moved);
    for (int64_t i = 0; i < ops->dim; i++) {
        const double scale = step * fmax(1, fabs(theta[i]));
        const volatile double above = theta[i] + scale, below = theta[i] - scale;
        moved[i] = above;
        const double up = ops->log_density(self->options, moved);
        moved[i] = below;
        gradient[i] += (up - ops->log_density(self->options, moved)) / (above - below);
        moved[i] = theta[i];
    }
}

/* A density that is not there is NaN: the status is of the whole block. */
static em_status density_add_prior(em_model *model, const em_query *query)
{
    density *self = (density *)model;
    const em_model_ops *ops = model->ops;

    for (int64_t c = 0; c < query->n_chain; c++) {
        const double *theta = query->theta + c * query->stride;
        double *gradient = query->gradient + c * query->stride;
        em_status status = EM_OK;
        double value = 0;
        if (ops->log_density_gradient) {
            memset(self->partial, 0, (size_t)ops->dim * sizeof *self->partial);
            const uint64_t before = em_n_said();
            status = ops->log_density_gradient(self->options, theta, &value, self->partial);
            if (status < 0)
                return em_default_message(status, before, "log_density_gradient");
            for (int64_t i = 0; i < ops->dim; i++)
                gradient[i] += self->partial[i];
        } else {
            value = ops->log_density(self->options, theta);
            if (query->wanted != EM_WANT_LOG_DENSITY)
                add_differences(self, theta, gradient);
        }
        query->log_density[c] += status > 0 ? NAN : value;
    }
    return EM_OK;
}

static em_status density_report(em_model *model, const em_draw *draw, const double *theta,
                                double *out)
{
    (void)draw;
    memcpy(out, theta, (size_t)model->dim * sizeof *out);
    return EM_OK;
}

/* A density of the options alone stands for the functions that it leaves out. */
static em_status complete_density(const char *path, em_model_ops *ops)
{
    if (ops->dim < 1)
        return em_fail(EM_ECONFIG, "%s: its model has dim %lld, expected at least 1", path,
                       (long long)ops->dim);
    ops->create = density_create;
    ops->destroy = density_destroy;
    ops->add_prior = density_add_prior;
    ops->report = ops->report ? ops->report : density_report;
    return EM_OK;
}

em_status em_model_complete(const char *path, em_model_ops *ops)
{
    const bool is_density = !ops->create && (ops->log_density_gradient || ops->log_density);
    const em_status status = is_density ? complete_density(path, ops) : EM_OK;
    const char *lacks = !ops->name || !*ops->name ? "name"
                        : !ops->create            ? "create, or a log_density"
                        : !ops->destroy           ? "destroy"
                        : !ops->add_prior && !(ops->latent && ops->latent->update)
                            ? "add_prior, or an update"
                        : !ops->report                          ? "report"
                        : ops->fields && ops->options_size == 0 ? "options_size"
                        : ops->ranges && !ops->minibatch        ? "minibatch, which ranges need"
                                                                : NULL;

    if (!status && lacks)
        return em_fail(EM_ECONFIG, "%s: its model has no %s", path, lacks);
    return status;
}
