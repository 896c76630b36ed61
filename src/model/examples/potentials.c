/*
 * Test densities exp(-U) of one and two dimensions (EQUATIONS 21): two double wells and a banana.
 * On request minibatches bring gradient noise of known size.
 */
#include "base/memory.h"
#include "emass/model/prior.h"
#include "model/construct/construct.h"
#include "model/examples/artificial_noise.h"

extern const em_model_ops em_model_double_well, em_model_double_well_tilted,
    em_model_banana; /* at the end */

/* Returns U and writes its gradient. */
typedef double potential(const double *theta, double *slope);

/* U = theta^4 - 2 theta^2 */
static double double_well(const double *theta, double *slope)
{
    const double x = theta[0];

    slope[0] = 4 * x * x * x - 4 * x;
    return x * x * (x * x - 2);
}

/* U = (theta + 4)(theta + 1)(theta - 1)(theta - 3) / 14 + 1/2 */
static double double_well_tilted(const double *theta, double *slope)
{
    const double x = theta[0];

    slope[0] = (4 * x * x * x + 3 * x * x - 26 * x - 1) / 14;
    return (x + 4) * (x + 1) * (x - 1) * (x - 3) / 14 + 0.5;
}

/* U = theta1^4 / 10 + w^2 / 2, w = 4 (theta2 + 1.2) - theta1^2 */
static double banana(const double *theta, double *slope)
{
    const double x = theta[0], w = 4 * (theta[1] + 1.2) - x * x;

    slope[0] = 0.4 * x * x * x - 2 * x * w;
    slope[1] = 4 * w;
    return x * x * x * x / 10 + w * w / 2;
}

typedef struct potential_options {
    double gradient_noise;
} potential_options;

static const em_field fields[] = {EM_GRADIENT_NOISE_FIELD(potential_options), {0}};

typedef struct potential_model {
    em_model model;
    potential *U;
    em_artificial_noise noise;
} potential_model;

static void destroy(em_model *model)
{
    em_artificial_noise_destroy(&((potential_model *)model)->noise);
    em_release(&model);
}

static const em_variable scalar = {.name = "theta"};
static const em_variable pair = {.name = "theta", .n_axes = 1, .shape = {2}};

static em_status set_up(em_model *model, const void *options, const em_model_context *context)
{
    const em_model_ops *ops = model->ops;
    const em_variable *variable = ops == &em_model_banana ? &pair : &scalar;
    potential_model *self = (potential_model *)model;

    self->U = ops == &em_model_banana        ? banana
              : ops == &em_model_double_well ? double_well
                                             : double_well_tilted;
    model->dim = variable->n_axes ? variable->shape[0] : 1;
    model->n_variable = 1;
    model->variable = variable;
    return em_artificial_noise_create(((const potential_options *)options)->gradient_noise, context,
                                      model, &self->noise);
}

static em_status add_prior(em_model *model, const em_query *query)
{
    double slope[2];

    for (int64_t c = 0; c < query->n_chain; c++) {
        const int64_t row = c * query->stride;
        query->log_density[c] -= ((potential_model *)model)->U(query->theta + row, slope);
        for (int64_t i = 0; i < model->dim; i++)
            query->gradient[row + i] -= slope[i];
    }
    return EM_OK;
}

static em_status add_likelihood(em_model *model, const em_query *query)
{
    em_artificial_noise_add(&((potential_model *)model)->noise, model->dim, query);
    return EM_OK;
}

#define POTENTIAL_OPS                                                                              \
    .options_size = sizeof(potential_options), .fields = fields, .create = em_model_build,         \
    .state = &(const em_construction){sizeof(potential_model), set_up}, .destroy = destroy,        \
    .add_prior = add_prior, .add_likelihood = add_likelihood, .prior = &(const em_model_prior)     \
    {                                                                                              \
        .none = "is a density that is not made of a prior and a likelihood"                        \
    }

const em_model_ops em_model_double_well = {.name = "double_well",
                                           .doc = "two equal wells: U = theta^4 - 2 theta^2",
                                           .source = "Ma, Chen & Fox (2015), figure 2",
                                           POTENTIAL_OPS};

const em_model_ops em_model_double_well_tilted = {
    .name = "double_well_tilted",
    .doc = "two unequal wells: U = (theta + 4)(theta + 1)(theta - 1)(theta - 3) / 14 + 1/2",
    .source = "Ding et al. (2014); Li et al. (2016), figure 1",
    POTENTIAL_OPS};

const em_model_ops em_model_banana = {
    .name = "banana",
    .doc = "a curved ridge: U = theta1^4 / 10 + (4 (theta2 + 1.2) - theta1^2)^2 / 2",
    .source = "Ma, Chen & Fox (2015), figure 2",
    POTENTIAL_OPS};
