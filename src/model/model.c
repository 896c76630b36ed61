#include "model/model.h"

#include "base/memory.h"
#include "emass/model/averages.h"
#include "emass/model/latent.h"
#include "emass/model/prior.h"
#include "model/bounds.h"
#include "model/external/failures.h"

#include <string.h>

/* Work space for one chain of a model with bounds, in the constrained parameters. */
struct em_constrained {
    int64_t n, stride;
    double *x, *gradient; /* [stride] */
};

static em_status create_constrained(em_model *model)
{
    const int64_t n = em_bounds_size(model->n_parameter, model->parameter);
    struct em_constrained *constrained;
    const em_status status = em_allocate(1, sizeof *constrained, &constrained);

    if (status)
        return status;
    model->constrained = constrained;
    constrained->n = n;
    constrained->stride = em_stride(n);
    return em_allocate_all(EM_ARRAY(constrained->x, constrained->stride),
                           EM_ARRAY(constrained->gradient, constrained->stride));
}

/* The name of a capability that works in unconstrained parameters and thus excludes bounds; NULL:
 * there is none. */
static const char *unbounded_capability(const em_model_ops *ops)
{
    return ops->latent && (ops->latent->update || ops->latent->after_iteration) ? "latent"
           : ops->minibatch                                                     ? "minibatch"
           : ops->counts                                                        ? "counts"
           : ops->metric                                                        ? "metric"
                                                                                : NULL;
}

static em_status check_parameters(const em_model *model)
{
    const char *name = model->ops->name;

    for (int64_t i = 0; i < model->n_parameter; i++) {
        const em_bounds *b = &model->parameter[i].bounds;
        if (b->constraint == EM_BETWEEN && !(b->lower < b->upper))
            return em_fail(EM_EMODEL, "model %s: %s: found the bounds %g and %g, expected a range",
                           name, model->parameter[i].name, b->lower, b->upper);
    }
    const int64_t size = em_bounds_free_size(model->n_parameter, model->parameter);
    if (model->dim != size)
        return em_fail(EM_EMODEL, "model %s: found dim %lld, expected %lld as its parameters have",
                       name, (long long)model->dim, (long long)size);
    if (size == 0)
        return em_fail(EM_EMODEL, "model %s: found no parameter that is free to vary, expected one",
                       name);
    const bool bounded = em_bounds_any(model->n_parameter, model->parameter);
    const char *capability = bounded ? unbounded_capability(model->ops) : NULL;
    if (capability)
        return em_fail(
            EM_EMODEL,
            "model %s: found bounds and the capability %s, which does not support bounds", name,
            capability);
    return EM_OK;
}

/* Checks the variables of a model. A model without a report function reports its parameters. */
static em_status check_variables(const em_model *model)
{
    const int64_t own = em_bounds_size(model->n_parameter, model->parameter);
    const int64_t expected = model->n_parameter > 0 ? own : model->dim;
    int64_t found = 0;

    for (int64_t i = 0; i < model->n_variable; i++)
        if (model->variable[i].group != EM_PREDICTIONS) /* those are made by `predict` */
            found += em_bounds_size(1, &model->variable[i]);
    return model->ops->report || found == expected
               ? EM_OK
               : em_fail(
                     EM_EMODEL,
                     "model %s: found no function `report` and variables of %lld numbers, expected "
                     "variables of %lld numbers, as its parameters have, or a `report`",
                     model->ops->name, (long long)found, (long long)expected);
}

/* Derives sizes and names from the parameters that a model declares. */
static em_status settle(em_model *model, const void *options)
{
    const em_model_ops *ops = model->ops;

    model->options = ops->fields ? options : ops->state;
    if (model->n_parameter == 0 && ops->n_parameter > 0) {
        model->n_parameter = ops->n_parameter;
        model->parameter = ops->parameter;
    }
    if (model->n_parameter == 0)
        return check_variables(model);
    if (model->dim == 0)
        model->dim = em_bounds_free_size(model->n_parameter, model->parameter);
    if (model->n_variable == 0) {
        model->n_variable = model->n_parameter;
        model->variable = model->parameter;
    }
    em_status status = check_parameters(model);
    status = status ? status : check_variables(model);
    if (!status && em_bounds_any(model->n_parameter, model->parameter))
        status = create_constrained(model);
    return status;
}

em_status em_model_create(const em_model_ops *ops, const void *options,
                          const em_model_context *context, em_model **out)
{
    *out = NULL;
    em_status status = ops->create(options, context, out);
    if (status || !*out)
        return status;
    (*out)->n_rank = context->n_rank > 1 ? context->n_rank : 1;
    status = settle(*out, options);
    if (!status && ops->use_ranks && context->ranks)
        ops->use_ranks((*out)->options, context->ranks);
    if (status)
        em_model_destroy(out);
    return status;
}

void em_model_destroy(em_model **model)
{
    if (!*model)
        return;
    struct em_constrained *constrained = (*model)->constrained;
    (*model)->ops->destroy(*model);
    *model = NULL;
    if (constrained)
        em_release_all(&constrained->x, &constrained->gradient);
    em_release(&constrained);
}

/* The constrained parameters for theta: theta itself if there are no bounds, or a copy in the work
 * space of the model. */
static const double *constrain(const em_model *model, const double *theta)
{
    if (!model->constrained)
        return theta;
    em_bounds_constrain(model->n_parameter, model->parameter, theta, model->constrained->x);
    return model->constrained->x;
}

/* Queries the model chain by chain in the constrained parameters, and transforms the results back.
 */
static em_status ask(em_model *model, const em_query *query,
                     em_status (*add)(em_model *model, const em_query *query), bool jacobian)
{
    const struct em_constrained *constrained = model->constrained;

    for (int64_t c = 0; c < query->n_chain; c++) {
        const em_query free = em_query_panel(query, c, 1);
        double value = 0;
        em_query one = free;

        one.theta = constrain(model, free.theta);
        one.gradient = constrained->gradient;
        one.log_density = &value;
        one.stride = constrained->stride;
        memset(constrained->gradient, 0,
               (size_t)constrained->stride * sizeof *constrained->gradient);
        const em_status status = add(model, &one);
        if (status < 0)
            return status;
        em_bounds_pull_back(model->n_parameter, model->parameter, free.theta, constrained->x,
                            constrained->gradient, free.gradient);
        if (jacobian)
            value += em_bounds_add_jacobian(model->n_parameter, model->parameter, free.theta,
                                            free.gradient);
        *free.log_density += value;
    }
    return EM_OK;
}

em_status em_model_add_prior(em_model *model, const em_query *query)
{
    return model->constrained ? ask(model, query, model->ops->add_prior, true)
                              : model->ops->add_prior(model, query);
}

em_status em_model_add_likelihood(em_model *model, const em_query *query)
{
    return model->constrained ? ask(model, query, model->ops->add_likelihood, false)
                              : model->ops->add_likelihood(model, query);
}

em_status em_model_report(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    const double *x = constrain(model, theta);

    if (model->ops->report)
        return model->ops->report(model, draw, x, out);
    memcpy(out, x, (size_t)(model->constrained ? model->constrained->n : model->dim) * sizeof *out);
    return EM_OK;
}

static em_status move(em_model *model, const em_draw *draw, double *theta,
                      em_status (*to)(em_model *model, const em_draw *draw, double *theta))
{
    if (!model->constrained)
        return to(model, draw, theta);
    constrain(model, theta);
    const em_status status = to(model, draw, model->constrained->x);
    em_bounds_free(model->n_parameter, model->parameter, model->constrained->x, theta);
    return status;
}

em_status em_model_start(em_model *model, const em_draw *draw, double *theta)
{
    return model->ops->start ? move(model, draw, theta, model->ops->start) : EM_OK;
}

em_status em_model_draw_prior(em_model *model, const em_draw *draw, double *theta)
{
    return move(model, draw, theta, model->ops->prior->draw);
}

void em_model_average(em_model *model, const em_draw *draw, const double *theta)
{
    const em_model_averages *averages = model->ops->averages;

    if (averages && averages->add)
        averages->add(model, draw, constrain(model, theta));
}

const char *em_model_why(const em_model *model)
{
    return model->rejections.count > 0 ? model->rejections.first
           : model->failures           ? model->failures->first
                                       : "";
}
