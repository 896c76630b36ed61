/*
 * Common parts of the regressions linear, logistic, poisson and negative_binomial. Each of these is
 * made from a family (a link and a distribution of the response), options and a table. Their priors
 * are in model/regression/regression_prior.h. Unknown shape parameters are sampled as logarithms.
 */
#pragma once

#include "base/memory.h"
#include "data/design/features.h"
#include "emass/model.h"
#include "emass/model/prediction.h"
#include "emass/model/prior.h"
#include "emass/shards.h"
#include "model/regression/glm.h"
#include "model/regression/prior_law.h"
#include "model/regression/variate.h"

/* The first member of the options of a regression. */
typedef struct em_regression_options {
    em_table_options table;
    char *prior;        /* NULL: the default */
    double prior_scale; /* NaN: absent */
    bool log_likelihood, posterior_predictive;
} em_regression_options;

/* The rows of these options for a field table; they follow EM_TABLE_FIELDS. */
#define EM_REGRESSION_FIELDS                                                                       \
    EM_REAL(em_regression_options, prior_scale, .minimum = 1e-300, .maximum = 1e300,               \
            .fallback = "none", .word = "none",                                                    \
            .doc = "a number in place of prior: the variance of a normal prior on every "          \
                   "coefficient, the intercept too, alpha in the papers; the prior of sigma "      \
                   "is then half Student-t of scale 2.5, that of phi inverse Gamma(0.4, 0.3)"),    \
        EM_JSON(                                                                                   \
            em_regression_options, prior, .fallback = "",                                          \
            .doc =                                                                                 \
                "on the data's scale: {coefficients: {normal: [0, 10]}, intercept: "               \
                "{student_t: [3, 0, 5]}, sigma: {exponential: 1}, autoscale: true}, or "           \
                "coefficients: {age: {normal: [0, 1]}, default: {cauchy: [0, 2.5]}}; defaults: "   \
                "coefficients normal(0, 2.5 sd(y) / sd(x)); intercept, with "                      \
                "predictors at their means, normal(mean(y), 2.5 sd(y)); sigma "                    \
                "exponential of mean sd(y); with a log or logit link 0 and 1 replace "             \
                "mean(y) and sd(y)"),                                                              \
        EM_BOOL(em_regression_options, log_likelihood, .fallback = "false",                        \
                .doc = "store the log likelihood of each observation, in the group "               \
                       "log_likelihood; and responses in observed_data"),                          \
        EM_BOOL(em_regression_options, posterior_predictive, .fallback = "false",                  \
                .doc = "store observations drawn from the posterior predictive distribution, in "  \
                       "the group posterior_predictive; and responses in observed_data")

/* A positive parameter of the response distribution other than eta. */
typedef struct em_shape {
    const char *name;
    double value; /* NaN: unknown; the members below are then used */
    em_prior prior;
    em_prior earlier; /* the prior with model.prior_scale, if no other is given */
    bool prior_given; /* by its own option */
    bool of_response; /* it has the unit of the responses */
    bool in_metric;   /* em_family.information covers it, too */
} em_shape;

/*
 * Fisher information of an observation. `eta` is the information about eta; by_eta and by_shape are
 * its derivatives with respect to eta and to the logarithm of the unknown shape parameter, if there
 * is one. `shape` is the information about that logarithm. The derivatives of `shape` and the mixed
 * information are zero.
 */
typedef struct em_information {
    double eta, by_eta, by_shape, shape;
} em_information;

typedef struct em_family {
    em_glm_link *link;
    em_storage storage; /* of a response */
    /* The terms of log p(y | eta, shape) that the link omits; unknown shapes are NaN. */
    double (*constant)(double y, const double *shape);
    double (*mean)(double eta); /* of a response, where there is one */
    /* Draws a response. The status is positive, with a message, if it is too large to be drawn. */
    em_status (*draw)(em_variate *v, double eta, const double *shape, double *y);
    /* NULL: not known. */
    em_information (*information)(double eta, const double *shape);
} em_family;

/* A model derives its own struct with this as the first member. */
typedef struct em_regression {
    em_model model;
    em_owner memory; /* of its arrays */
    const em_family *family;
    em_design *design; /* divided by `unit`, as its responses are */
    em_glm *glm;
    double unit;       /* unit of the responses, if the link is the identity */
    bool unit_is_free; /* `unit` is not a known sigma but the standard deviation of the responses,
                          if that is computed */
    bool intercept, standardised, identity;
    double prior_variance; /* of all coefficients, where */
    em_prior *prior;       /* [n_column] is NULL: on the data's scale */
    double *mean, *sd; /* [n_column] moments of the columns, for priors on the scale of the data; 0
                          and 1 for an intercept; the mean of columns that are not centred is 0 */
    /* lines of text about the priors, and numbers of parameters that they are about */
    int64_t n_line;
    char **prior_line;
    double *prior_count;
    double known_sigma[2]; /* with normal noise: a known sigma and the number of observations; 0:
                              sigma is not known, or observations have weights */
    double *prior_location, *prior_sd, *prior_df; /* [n_column] in units of beta */
    int n_shape, n_unknown;
    em_shape shape[EM_GLM_SHAPES];
    const em_shape *unknown[EM_GLM_SHAPES]; /* [n_unknown] those that are parameters */
    em_variable variable[2 + EM_GLM_SHAPES + 2];
    em_datum datum[10 + EM_FEATURES_ARRAYS];
    em_features *features;
    em_parameters block[1 + EM_GLM_SHAPES]; /* beta, and every unknown shape */
    /* [n_original] names of the coefficients on the original scale; NULL: not standardised */
    const char **original;
    int64_t n_original;
    bool predicts;
    double *line;     /* [rows.total] lines of the table of new rows; else NULL */
    double *observed; /* [rows.total] responses, if predictions of each are reported; else NULL */
    double *theta;    /* [dim] position of a draw, for predictions; NULL: the model is sampled */
    double *row;      /* [n_column] a row of the design, for the metric */
    double *beta;     /* [n_column] as reported */
    double *eta, *density; /* [n_row] work space of a report; NULL: only parameters are reported */
    double *constant;      /* [n_row] constants of log likelihoods; NULL: not reported */
    const em_shards *shards; /* communication between shards; NULL: this rank has all data */
} em_regression;

/* Arguments of em_regression_create from a model. */
typedef struct em_regression_plan {
    const em_family *family;
    bool identity; /* the link is the identity, so coefficients and responses have a unit */
    double unit;   /* the unit by which design and responses are divided; NaN: it is computed */
    int n_shape;
    em_shape shape[EM_GLM_SHAPES];
} em_regression_plan;

/* Sets up `self` from a table whose response has been checked. Before, all fields of `self` are
 * zero except for the features of the table. Call em_regression_destroy even after an error.
 * Collective. Errors: those of em_design_create; EM_EMEMORY of a rank alone. */
em_status em_regression_create(em_regression *self, const em_table *table,
                               const em_regression_options *options,
                               const em_model_context *context, const em_regression_plan *plan);

/* The unit of a shape parameter in the units of the data. Local. */
static inline double em_regression_unit(const em_regression *self, const em_shape *shape)
{
    return shape->of_response ? self->unit : 1;
}

/* em_model_ops.log_constants. */
em_status em_regression_log_constants(em_model *model, const double *theta, double *prior,
                                      double *likelihood);

/* Functions of em_model_ops; `destroy` for models that own nothing more. */
void em_regression_destroy(em_model *model);
em_status em_regression_add_prior(em_model *model, const em_query *query);
em_status em_regression_add_likelihood(em_model *model, const em_query *query);
em_status em_regression_add_metric(em_model *model, bool prior, const em_rows *rows,
                                   const double *theta, double *metric, double *derivative);
em_status em_regression_report(em_model *model, const em_draw *draw, const double *theta,
                               double *out);
em_status em_regression_predict(em_model *model, const em_draw *draw, const double *posterior,
                                double *out);

em_status em_regression_draw_prior(em_model *model, const em_draw *draw, double *theta);
void em_regression_describe(const em_model *model, FILE *out);

/* A variable with one number of each column of the design, labelled by their names. Local. */
em_variable em_per_coefficient(const em_regression *self, const char *name);

/* The functions that every regression has, for its em_model_ops. */
#define EM_REGRESSION_OPS                                                                          \
    .add_prior = em_regression_add_prior, .report = em_regression_report,                          \
    .describe = em_regression_describe,                                                            \
    .prediction = &(const em_model_prediction){.predict = em_regression_predict},                  \
    .prior = &(const em_model_prior)                                                               \
    {                                                                                              \
        .draw = em_regression_draw_prior, .log_constants = em_regression_log_constants             \
    }

/* The rows of a regression that is no more than an em_regression. */
#define EM_PLAIN_REGRESSION_OPS                                                                    \
    .destroy = em_regression_destroy, .add_likelihood = em_regression_add_likelihood,              \
    .metric = &(const em_model_metric){.add = em_regression_add_metric}, EM_REGRESSION_OPS

/* For em_model_build: sets up the em_regression of the counts in the table that the options name.
 * Collective. Errors: EM_EDATA, also for responses that are no counts; EM_EMEMORY. */
em_status em_count_regression_set_up(em_model *model, const em_regression_options *options,
                                     const em_model_context *context,
                                     const em_regression_plan *plan);

/* Draws a Poisson count. The status is positive, with a message, if the mean is too large. Local.
 */
em_status em_draw_count(em_variate *v, double mean, double *y);
