/*
 * What the regression models of this room share. A model is a family (a link and a distribution of
 * the responses about it), options and a table: linear, logistic, poisson, negative_binomial. The
 * coefficients beta ~ N(0, prior_scale I); unknown shape parameters are sampled as logarithms.
 */
#ifndef EM_MODEL_REGRESSION_H
#define EM_MODEL_REGRESSION_H

#include "data/features.h"
#include "emass/model.h"
#include "model/glm.h"
#include "model/variate.h"

/* First member of the options of such a model. */
typedef struct em_regression_options {
    em_table_options table;
    double prior_scale;
    bool log_likelihood, posterior_predictive;
} em_regression_options;

/* The rows of those options for a field table, behind EM_TABLE_FIELDS. */
#define EM_REGRESSION_FIELDS                                                                       \
    EM_REAL(em_regression_options, prior_scale, .minimum = 1e-300, .maximum = 1e300,               \
            .fallback = "10",                                                                      \
            .doc = "variance of the normal prior on every coefficient, alpha in the papers"),      \
        EM_BOOL(em_regression_options, log_likelihood, .fallback = "false",                        \
                .doc = "store that of each observation, in the group log_likelihood; and "         \
                       "responses in observed_data"),                                              \
        EM_BOOL(em_regression_options, posterior_predictive, .fallback = "false",                  \
                .doc = "store observations drawn anew, in the group posterior_predictive; and "    \
                       "responses in observed_data")

/* A parameter of the distribution besides eta, positive. */
typedef struct em_shape {
    const char *name;
    double value; /* NaN: unknown, and then: */
    /* The log density of its prior at x; *slope is x times the derivative. */
    double (*log_prior)(double scale, double x, double *slope);
    /* Minus its second derivative by log x, and the derivative of that; NULL: not known. */
    void (*curvature)(double scale, double x, double curvature[2]);
    double scale;
    double (*draw)(em_variate *v, double scale); /* from that prior */
} em_shape;

/*
 * Fisher information of an observation: about eta; its derivatives by eta and by the logarithm of
 * the unknown shape parameter, where there is one; and about that logarithm, of which the other
 * derivatives, and the information about both together, are zero.
 */
typedef struct em_information {
    double eta, by_eta, by_shape, shape;
} em_information;

typedef struct em_family {
    em_glm_link *link;
    em_storage storage; /* of a response */
    /* The terms of log p(y | eta, shape) that the link leaves out; unknown shapes are NaN. */
    double (*constant)(double y, const double *shape);
    double (*mean)(double eta); /* of a response, where there is one */
    /* A response: recoverable, with a message, where it is too large to be drawn. */
    em_status (*draw)(em_variate *v, double eta, const double *shape, double *y);
    /* NULL: not known. */
    em_information (*information)(double eta, const double *shape);
} em_family;

/* A model derives its own struct with this as the first member. */
typedef struct em_regression {
    em_model model;
    const em_family *family;
    em_design *design; /* divided by `unit`, as its responses are */
    em_glm *glm;
    double unit, prior_variance;
    int n_shape, n_unknown;
    em_shape shape[EM_GLM_SHAPES];
    em_variable variable[2 + EM_GLM_SHAPES + 2];
    em_datum datum[4 + EM_FEATURES_ARRAYS];
    em_features *features;
    em_parameters block[1 + EM_GLM_SHAPES]; /* beta, and every unknown shape */
    const char **original; /* [n_original] coefficients of what is standardised; NULL */
    int64_t n_original;
    bool predicts;
    double *line;          /* [rows.total] of the table that is predicted for; else NULL */
    double *observed;      /* [rows.total] responses, where draws are reported of each; else NULL */
    double *theta;         /* [dim] of a draw to predict from; NULL: the model is to be sampled */
    double *row;           /* [n_column] of the design, for the metric */
    double *eta, *density; /* [n_row] of a report; NULL: reports are of the parameters alone */
    double *constant;      /* [n_row] of log likelihoods; NULL: not reported */
} em_regression;

/* What em_regression_create is told by a model. */
typedef struct em_regression_plan {
    const em_family *family;
    double unit; /* the design and the responses are divided by it */
    int n_shape;
    em_shape shape[EM_GLM_SHAPES];
} em_regression_plan;

/* Sets up `self`, all of it zero before but for the features, if it has any, from their table,
 * whose response has been checked. After an error em_regression_release is due. Local. Errors:
 * those of em_design_create. */
em_status em_regression_create(em_regression *self, const em_table *table,
                               const em_regression_options *options,
                               const em_model_context *context, const em_regression_plan *plan);
void em_regression_release(em_regression *self);

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

/* Half Student-t with 3 degrees of freedom and this scale, for em_shape. Local. */
double em_half_student_t_prior(double scale, double x, double *slope);
void em_half_student_t_curvature(double scale, double x, double curvature[2]);
double em_half_student_t_draw(em_variate *v, double scale);

#endif
