/*
 * Bayesian negative binomial regression: y_i of mean mu_i and variance mu_i + mu_i^2 / phi, log
 * mu_i = x_i . beta + log exposure_i, phi the reciprocal of the dispersion (Stan's
 * neg_binomial_2_log): log p(y | eta, phi) = log Gamma(y + phi) - log Gamma(phi) - log y! + y log
 * mu + phi log phi - (y + phi) log(mu + phi) = y eta - (y + phi) log(1 + e^a) + R(y, phi) - log y!,
 * a = eta - log phi, where R = log(Gamma(y + phi) / (Gamma(phi) phi^y)) is no difference of large
 * numbers, so that the Poisson distribution is reached smoothly as phi grows. With s = e^a / (1 +
 * e^a) the derivatives are, by eta, y - (y + phi) s; by log phi, (y + phi) s - phi log(1 + e^a) +
 * dR / d log phi.
 */
#include "base/memory.h"
#include "emass/model/metric.h"
#include "math/simd/vector.h"
#include "model/construct/construct.h"
#include "model/regression/regression.h"

#include <math.h>

typedef struct negative_binomial_options {
    em_regression_options regression;
    double phi;
} negative_binomial_options;

static const em_field fields[] = {
    EM_TABLE_FIELDS(NULL),
    EM_TABLE_EXPOSURE_FIELD,
    EM_TABLE_WEIGHTS_FIELDS,
    EM_REAL(negative_binomial_options, phi, .minimum = 1e-300, .maximum = 1e300,
            .fallback = "unknown", .word = "unknown",
            .doc = "reciprocal dispersion: the variance is mean + mean^2 / phi; unknown: its prior "
                   "is exponential(1), or prior.phi; with prior_scale inverse Gamma(0.4, 0.3)"),
    EM_REGRESSION_FIELDS,
    {0}};

static void link_of_chain(const em_glm_tile *t, int64_t c)
{
    const double phi = t->shape[c * EM_GLM_SHAPES], log_phi = log(phi);
    const int64_t at = c * EM_TILE_ROWS;
    double *eta = t->eta + at, *density = t->density + at;
    double *softplus = t->work[0] + at, *sigmoid = t->work[1] + at;

    for (int64_t i = 0; i < EM_TILE_ROWS; i++)
        softplus[i] = eta[i] - log_phi;
    em_logistic(EM_TILE_ROWS, softplus, softplus, sigmoid);
    for (int64_t i = 0; i < EM_TILE_ROWS; i++) {
        const double y = t->response[i];
        density[i] = y * eta[i] - (y + phi) * softplus[i];
        sigmoid[i] *= y + phi;
        eta[i] = y - sigmoid[i];
        softplus[i] *= phi;
    }
    if (!t->slope[0])
        return;
    double *slope = t->slope[0] + at, rising[EM_TILE_ROWS] __attribute__((aligned(64)));
    em_log_rising(EM_TILE_ROWS, t->response, phi, rising, slope);
    for (int64_t i = 0; i < EM_TILE_ROWS; i++) {
        density[i] += rising[i];
        slope[i] += sigmoid[i] - softplus[i];
    }
}

static void negative_binomial(const em_glm_tile *t)
{
    for (int64_t c = 0; c < t->n_chain; c++)
        link_of_chain(t, c);
}

/* The constant of an observation: -log y! and, if phi is known, the terms of phi. */
static double constant(double y, const double *shape)
{
    _Alignas(64) double of[EM_LANES] = {y}, rising[EM_LANES], slope[EM_LANES];

    if (isnan(shape[0]))
        return -lgamma(y + 1);
    em_log_rising(EM_LANES, of, shape[0], rising, slope);
    return rising[0] - lgamma(y + 1);
}

/* Draws from a Poisson distribution whose mean is gamma distributed. */
static em_status draw(em_variate *v, double eta, const double *shape, double *y)
{
    return em_draw_count(v, exp(eta) * em_variate_gamma(v, shape[0]) / shape[0], y);
}

/* mu phi / (mu + phi). */
static em_information information(double eta, const double *shape)
{
    const double phi = shape[0], s = 1 / (1 + exp(log(phi) - eta));

    return (em_information){.eta = phi * s, .by_eta = phi * s * (1 - s)};
}

static const em_family family = {.link = negative_binomial,
                                 .storage = EM_STORE_INT,
                                 .constant = constant,
                                 .mean = exp,
                                 .draw = draw,
                                 .information = information};

static em_status set_up(em_model *model, const void *untyped, const em_model_context *context)
{
    const negative_binomial_options *options = untyped;
    const em_regression_plan plan = {
        .family = &family,
        .unit = 1,
        .n_shape = 1,
        .shape = {{.name = "phi",
                   .value = options->phi,
                   .prior = {EM_PRIOR_EXPONENTIAL, 1, 0, 1},            /* as rstanarm has it */
                   .earlier = {EM_PRIOR_INVERSE_GAMMA, 0.4, 0, 0.3}}}}; /* as brms has it */

    return em_count_regression_set_up(model, &options->regression, context, &plan);
}

const em_model_ops em_model_negative_binomial = {
    .name = "negative_binomial",
    .doc = "Bayesian negative binomial regression of counts, log link, priors on "
           "the scale of the data",
    .source = "Gelman et al., Bayesian Data Analysis, section 16.4; Stan's neg_binomial_2_log",
    .options_size = sizeof(negative_binomial_options),
    .fields = fields,
    .create = em_model_build,
    .state = &(const em_construction){sizeof(em_regression), set_up},
    EM_PLAIN_REGRESSION_OPS};
