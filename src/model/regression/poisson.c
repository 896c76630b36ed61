/*
 * Bayesian Poisson regression: y_i ~ Poisson(mu_i), log mu_i = x_i . beta + log exposure_i, so that
 *     log p = sum_i [y_i eta_i - e^eta_i - log y_i!] + log prior,  eta = X beta + log exposure,
 *     grad  = X^T (y - e^eta) - beta / s.
 */
#include "emass/model/metric.h"
#include "math/simd/vector.h"
#include "model/construct/construct.h"
#include "model/regression/regression.h"

#include <math.h>

static const em_field fields[] = {EM_TABLE_FIELDS(NULL),
                                  EM_TABLE_EXPOSURE_FIELD,
                                  EM_TABLE_WEIGHTS_FIELDS,
                                  EM_REGRESSION_FIELDS,
                                  {0}};

static void poisson(const em_glm_tile *t)
{
    em_exp(t->n_chain * EM_TILE_ROWS, t->eta, t->density);
    for (int64_t c = 0; c < t->n_chain; c++)
        for (int64_t i = 0; i < EM_TILE_ROWS; i++) {
            double *eta = &t->eta[c * EM_TILE_ROWS + i],
                   *density = &t->density[c * EM_TILE_ROWS + i];
            const double y = t->response[i], mean = *density;
            *density = y * *eta - mean;
            *eta = y - mean;
        }
}

static double constant(double y, const double *shape)
{
    (void)shape;
    return -lgamma(y + 1);
}

static em_status draw(em_variate *v, double eta, const double *shape, double *y)
{
    (void)shape;
    return em_draw_count(v, exp(eta), y);
}

static em_information information(double eta, const double *shape)
{
    const double mean = exp(eta);

    (void)shape;
    return (em_information){.eta = mean, .by_eta = mean};
}

static const em_family family = {.link = poisson,
                                 .storage = EM_STORE_INT,
                                 .constant = constant,
                                 .mean = exp,
                                 .draw = draw,
                                 .information = information};

static em_status set_up(em_model *model, const void *options, const em_model_context *context)
{
    return em_count_regression_set_up(model, options, context,
                                      &(em_regression_plan){.family = &family, .unit = 1});
}

const em_model_ops em_model_poisson = {
    .name = "poisson",
    .doc = "Bayesian Poisson regression of counts, log link, priors on the scale of the data",
    .source = "Gelman et al., Bayesian Data Analysis, section 16.4",
    .options_size = sizeof(em_regression_options),
    .fields = fields,
    .create = em_model_build,
    .state = &(const em_construction){sizeof(em_regression), set_up},
    EM_PLAIN_REGRESSION_OPS};
