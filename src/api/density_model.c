/* Models that a program in another language computes (emass/host.h). */
#include "base/default_message.h"
#include "base/memory.h"
#include "emass/emass.h"
#include "math/finite.h"
#include "model/external/failures.h"
#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Labels of an axis. */
typedef struct axis_labels {
    char *axis, **label;
    int64_t n;
} axis_labels;

/* A list of variables that can grow. */
typedef struct variables {
    int64_t n, capacity, width; /* width: numbers of all of them */
    em_variable *item;
} variables;

struct em_density {
    em_owner memory; /* of texts and numbers */
    char *name, **unconstrained_name;
    int64_t dim, n_labels, labels_capacity, datum_capacity;
    uint64_t data_hash;
    variables parameter, output, data;
    em_datum *datum; /* [data.n] */
    axis_labels *labels;
    em_density_gradient *gradient;
    em_density_value *value;
    /* of a density without a gradient */
    em_status (*create_plain)(const void *options, const em_model_context *context, em_model **out);
    em_density_outputs *outputs;
    const void *state;
};

typedef struct density_model {
    em_model model;
    const em_density *density;
    em_variable *variable; /* the parameters, then the outputs */
    double *partial;       /* a gradient */
    int64_t n;             /* numbers of a position on the scale of the parameters */
} density_model;

/* ---------------------------------------------------------------- the model */

static void destroy_model(em_model *model)
{
    density_model *self = (density_model *)model;

    em_release_owner(&model->failures);
    em_release_all(&self->variable, &self->partial, &self);
}

static em_status create_model(const void *options, const em_model_context *context, em_model **out)
{
    const em_density *density = context->ops->state;
    const variables *parameter = &density->parameter, *output = &density->output;
    density_model *self = NULL;
    em_status status = em_allocate(1, sizeof *self, &self);

    (void)options;
    *out = NULL;
    if (status)
        return status;
    self->density = density;
    self->n = parameter->n > 0 ? parameter->width : density->dim;
    self->model = (em_model){.ops = context->ops,
                             .dim = parameter->n > 0 ? 0 : density->dim,
                             .unconstrained_name = (const char *const *)density->unconstrained_name,
                             .n_parameter = parameter->n,
                             .parameter = parameter->item,
                             .n_variable = parameter->n + output->n,
                             .data_hash = density->data_hash,
                             .n_datum = density->data.n,
                             .datum = density->datum,
                             .differentiated = true,
                             .may_solve = true};
    status = em_allocate(self->n, sizeof *self->partial, &self->partial);
    if (!status)
        status = em_allocate(self->model.n_variable, sizeof *self->variable, &self->variable);
    status = status ? status : em_failures_create(context, &self->model.failures);
    if (status) {
        destroy_model(&self->model);
        return status;
    }
    for (int64_t i = 0; i < self->model.n_variable; i++)
        self->variable[i] = i < parameter->n ? parameter->item[i] : output->item[i - parameter->n];
    self->model.variable = self->variable;
    *out = &self->model;
    return EM_OK;
}

/* Counts a failed evaluation. It does not count if the position itself is not finite because a
 * transform has overflowed. */
static double fail_evaluation(density_model *self, int64_t chain, const double *theta,
                              bool has_message, double value)
{
    char why[64];

    if (isfinite(value))
        snprintf(why, sizeof why, "the gradient is not finite");
    else
        snprintf(why, sizeof why, "the log density is %g", value);
    if (em_all_finite(self->n, theta))
        em_failures_add(self->model.failures, chain, self->n, theta,
                        has_message ? em_error_text() : why);
    return NAN;
}

/* Counts an evaluation whose density is zero. */
static double reject(density_model *self)
{
    em_rejections *rejections = &self->model.rejections;

    if (rejections->count++ == 0)
        snprintf(rejections->first, sizeof rejections->first, "the log density is -inf");
    return -INFINITY;
}

static em_status add_chain(density_model *self, int64_t chain, const double *theta,
                           double *log_density, double *gradient)
{
    const uint64_t before = em_messages_set();
    double value = NAN;

    em_failures_count_evaluation(self->model.failures, chain);
    memset(self->partial, 0, (size_t)self->n * sizeof *self->partial);
    const em_status status =
        self->density->gradient(self->density->state, theta, &value, self->partial);
    if (status < 0)
        return em_default_message(status, before, self->density->name);
    if (status == EM_OK && value == -INFINITY) {
        *log_density = reject(self);
        return EM_OK;
    }
    if (status > 0 || !isfinite(value) || !em_all_finite(self->n, self->partial)) {
        *log_density = fail_evaluation(self, chain, theta, em_messages_set() != before, value);
        return EM_OK;
    }
    *log_density += value;
    for (int64_t i = 0; i < self->n; i++)
        gradient[i] += self->partial[i];
    return EM_OK;
}

static em_status add_prior(em_model *model, const em_query *query)
{
    em_status status = EM_OK;

    for (int64_t c = 0; !status && c < query->n_chain; c++)
        status = add_chain((density_model *)model, query->chain ? query->chain[c] : c,
                           query->theta + c * query->stride, &query->log_density[c],
                           query->gradient + c * query->stride);
    return status;
}

static em_status report(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    const density_model *self = (const density_model *)model;
    const em_density *density = self->density;
    const uint64_t before = em_messages_set();

    (void)draw;
    memcpy(out, theta, (size_t)density->parameter.width * sizeof *out);
    if (density->output.n == 0)
        return EM_OK;
    const em_status status =
        density->outputs(density->state, theta, out + density->parameter.width);
    return status ? em_default_message(status, before, density->name) : EM_OK;
}

/* ---------------------------------------------------------------- one without a gradient */

static double value_of(const void *options, const double *theta)
{
    const em_density *density = options;

    return density->value(density->state, theta);
}

/* Creates the model as if a plug-in had this log density function, and sets the hash of its data.
 */
static em_status create_of_value(const void *options, const em_model_context *context,
                                 em_model **out)
{
    const em_density *density = context->ops->state;
    const em_status status = density->create_plain(options, context, out);

    if (!status)
        (*out)->data_hash = density->data_hash;
    return status;
}

static em_status add_value(em_context *context, em_density *density, em_model_ops *ops)
{
    const bool named = density->parameter.n > 0;

    ops->dim = named ? 0 : density->dim;
    ops->n_parameter = density->parameter.n;
    ops->parameter = named ? density->parameter.item : NULL;
    ops->log_density = value_of;
    const em_status status = em_model_complete(density->name, ops);
    if (status)
        return status;
    density->create_plain = ops->create;
    ops->create = create_of_value;
    return em_context_add_model(context, ops, density);
}

em_status em_context_add_density(em_context *context, em_density *density)
{
    const bool named = density->parameter.n > 0;
    em_model_ops ops = {.name = density->name, .doc = "a density of the host program"};

    if (!density->gradient && !density->value)
        return em_fail(EM_EUSAGE, "em_context_add_density: %s has no function", density->name);
    if (density->output.n > 0 && !density->outputs)
        return em_fail(EM_EUSAGE, "em_context_add_density: %s has outputs and no function for them",
                       density->name);
    if (density->value && density->data.n > 0)
        return em_fail(EM_EUSAGE,
                       "em_context_add_density: %s has data, which need a function with a gradient",
                       density->name);
    if (density->value)
        return add_value(context, density, &ops);
    ops.create = create_model;
    ops.destroy = destroy_model;
    ops.add_prior = add_prior;
    ops.report = named || density->output.n > 0 ? report : NULL;
    return em_context_add_model(context, &ops, density);
}

/* ---------------------------------------------------------------- creating a density */

em_status em_density_create(const char *name, int64_t dim, uint64_t data_hash, em_density **out)
{
    *out = NULL;
    if (dim < 0)
        return em_fail(EM_EUSAGE, "em_density_create: found dim %lld, expected 0 or more",
                       (long long)dim);
    em_status status = em_allocate(1, sizeof **out, out);
    if (status)
        return status;
    em_density *density = *out;
    density->dim = dim;
    density->data_hash = data_hash;
    status = em_own(&density->memory, em_copy_text(name, &density->name), &density->name);
    if (status)
        em_density_destroy(out);
    return status;
}

void em_density_destroy(em_density **out)
{
    em_density *density = *out;

    *out = NULL;
    if (!density)
        return;
    em_release_texts(density->dim, &density->unconstrained_name);
    em_release_all(&density->parameter.item, &density->output.item, &density->data.item,
                   &density->datum, &density->labels);
    em_release_owner(&density);
}

em_status em_density_compute(em_density *density, em_density_gradient *gradient,
                             em_density_value *value, em_density_outputs *outputs,
                             const void *state)
{
    if (!gradient == !value)
        return em_fail(EM_EUSAGE, "em_density_compute: expected one of gradient and value");
    if (value && outputs)
        return em_fail(EM_EUSAGE, "em_density_compute: outputs need a gradient");
    density->gradient = gradient;
    density->value = value;
    density->outputs = outputs;
    density->state = state;
    return EM_OK;
}

em_status em_density_name(em_density *density, int64_t i, const char *name)
{
    em_status status = EM_OK;

    if (i < 0 || i >= density->dim)
        return em_fail(EM_EUSAGE,
                       "em_density_name: found number %lld, expected at least 0 and less than %lld",
                       (long long)i, (long long)density->dim);
    if (!density->unconstrained_name)
        status = em_allocate(density->dim, sizeof *density->unconstrained_name,
                             &density->unconstrained_name);
    for (int64_t k = 0; !status && k < density->dim; k++) /* each number has a name */
        if (k != i && !density->unconstrained_name[k])
            status = em_format_text(&density->unconstrained_name[k], "%lld", (long long)k);
    if (!status) {
        em_release(&density->unconstrained_name[i]);
        status = em_copy_text(name, &density->unconstrained_name[i]);
    }
    return status;
}

static const char *const *find_labels(const em_density *density, const char *axis, int64_t n)
{
    for (int64_t i = 0; axis && i < density->n_labels; i++)
        if (density->labels[i].n == n && strcmp(density->labels[i].axis, axis) == 0)
            return (const char *const *)density->labels[i].label;
    return NULL;
}

static em_status set_axes(em_density *density, const int64_t *shape, const char *const *axis,
                          em_variable *variable, int64_t *width)
{
    em_status status = EM_OK;

    *width = 1;
    for (int a = 0; !status && a < variable->n_axes; a++) {
        variable->shape[a] = shape[a];
        *width *= shape[a];
        if (shape[a] < 1)
            return em_fail(EM_EUSAGE, "%s: found axis %d of length %lld, expected at least 1",
                           variable->name, a, (long long)shape[a]);
        if (!axis || !axis[a])
            continue;
        status = em_own(&density->memory, em_copy_text(axis[a], (char **)&variable->axis[a]),
                        &variable->axis[a]);
        variable->label[a] = find_labels(density, axis[a], shape[a]);
    }
    return status;
}

static em_status add_variable(em_density *density, variables *list, const char *name, int n_axes,
                              const int64_t *shape, const char *const *axis, em_variable variable)
{
    int64_t width = 0;

    if (n_axes < 0 || n_axes > EM_MAX_AXES)
        return em_fail(EM_EUSAGE, "%s: found %d axes, expected at most %d", name, n_axes,
                       EM_MAX_AXES);
    em_status status = em_reserve(&list->item, &list->capacity, list->n, list->n + 1);
    if (status)
        return status;
    variable.n_axes = n_axes;
    em_variable *added = &list->item[list->n];
    *added = variable;
    status = em_own(&density->memory, em_copy_text(name, (char **)&added->name), &added->name);
    if (status)
        return status;
    list->n++;
    status = set_axes(density, shape, axis, added, &width);
    list->width += width;
    return status;
}

em_status em_density_add_parameter(em_density *density, const char *name, int n_axes,
                                   const int64_t *shape, const char *const *axis, int constraint,
                                   double lower, double upper)
{
    if (density->dim > 0)
        return em_fail(EM_EUSAGE, "%s: found a parameter of a density with dim %lld, expected 0",
                       name, (long long)density->dim);
    if (constraint < EM_FREE || constraint > EM_SIMPLEX)
        return em_fail(EM_EUSAGE, "%s: found constraint %d, expected an em_constraint", name,
                       constraint);
    return add_variable(
        density, &density->parameter, name, n_axes, shape, axis,
        (em_variable){.bounds = {(em_constraint)constraint, .lower = lower, .upper = upper}});
}

em_status em_density_add_output(em_density *density, const char *name, int n_axes,
                                const int64_t *shape, const char *const *axis, int group,
                                int storage)
{
    if (group < 0 || group >= EM_N_REPORT_GROUP || storage < 0 || storage > EM_STORE_SINGLE)
        return em_fail(EM_EUSAGE,
                       "%s: found group %d and storage %d, expected those of emass/variable.h",
                       name, group, storage);
    return add_variable(density, &density->output, name, n_axes, shape, axis,
                        (em_variable){.group = (em_report_group)group,
                                      .storage = (em_storage)storage,
                                      .role = EM_TRANSFORMED_PARAMETER});
}

em_status em_density_add_data(em_density *density, const char *group, const char *name, int n_axes,
                              const int64_t *shape, const char *const *axis, const double *value)
{
    static const char *const known[] = {"observed_data", "constant_data"};
    variables *data = &density->data;
    const int64_t n = data->n, width = data->width;
    const int at = strcmp(group, known[0]) == 0 ? 0 : strcmp(group, known[1]) == 0 ? 1 : -1;
    double *copy = NULL;

    if (at < 0)
        return em_fail(EM_EUSAGE, "%s: found group %s, expected observed_data or constant_data",
                       name, group);
    em_status status = em_reserve(&density->datum, &density->datum_capacity, n, n + 1);
    if (status)
        return status;
    density->datum[n] = (em_datum){.group = known[at]};
    status = add_variable(density, data, name, n_axes, shape, axis, (em_variable){.n_axes = 0});
    status = status ? status : em_own_all(&density->memory, EM_ARRAY(copy, data->width - width));
    if (status)
        return status;
    memcpy(copy, value, (size_t)(data->width - width) * sizeof *copy);
    density->datum[n] = (em_datum){known[at], data->item[n], copy};
    return EM_OK;
}

em_status em_density_label_axis(em_density *density, const char *axis, int64_t n,
                                const char *const *label)
{
    axis_labels new = {.n = n};
    em_owner *memory = &density->memory;
    em_status status = em_own(memory, em_copy_text(axis, &new.axis), &new.axis);

    status = status ? status : em_own_all(memory, EM_ARRAY(new.label, n));
    for (int64_t i = 0; !status && i < n; i++)
        status = em_own(memory, em_copy_text(label[i], &new.label[i]), &new.label[i]);
    if (!status)
        status = em_reserve(&density->labels, &density->labels_capacity, density->n_labels,
                            density->n_labels + 1);
    if (!status)
        density->labels[density->n_labels++] = new;
    return status;
}
