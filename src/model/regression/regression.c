#include "model/regression/regression_prior.h"

#include "data/table/table.h"
#include "par/message.h"

#include <math.h>

/* ---------------------------------------------------------------- set up */

static void add_variable(em_regression *self, em_variable variable)
{
    self->variable[self->model.n_variable++] = variable;
}

/* A variable with one number for each observation of all shards. */
static em_variable per_observation(const em_regression *self, const char *name, em_storage storage,
                                   em_report_group group)
{
    return (em_variable){.name = name,
                         .storage = storage,
                         .group = group,
                         .sharded = true,
                         .n_axes = 1,
                         .shape = {self->design->rows.total},
                         .axis = {"observation"}};
}

/* The coefficients on the original scale. They always have an intercept, into which the means were
 * moved. They are a function of beta, so they are not monitored. */
static em_variable original_coefficients(const em_regression *self)
{
    const int64_t n = self->design->n_column;
    const bool same = n == self->n_original;

    return (em_variable){.name = "beta_original",
                         .n_axes = 1,
                         .shape = {self->n_original},
                         .axis = {same ? "coefficient" : "coefficient_original"},
                         .label = {self->original},
                         .unwatched = true};
}

static void add_variables(em_regression *self)
{
    const em_storage storage = self->family->storage;

    add_variable(self, em_per_coefficient(self, "beta"));
    for (int k = 0; k < self->n_unknown; k++)
        add_variable(self, (em_variable){.name = self->unknown[k]->name});
    if (self->original)
        add_variable(self, original_coefficients(self));
    if (self->constant)
        add_variable(self, per_observation(self, "y", EM_STORE_REAL, EM_LOG_LIKELIHOOD));
    if (self->predicts)
        add_variable(self, per_observation(self, "y", storage, EM_POSTERIOR_PREDICTIVE));
    if (!self->theta)
        return;
    add_variable(self, per_observation(self, "y", storage, EM_PREDICTIONS));
    add_variable(self, per_observation(self, "mu", EM_STORE_REAL, EM_PREDICTIONS));
}

/* Stores the coding of features and the moments of standardised columns, which emass predict needs,
 * and the priors. */
static void add_data(em_regression *self)
{
    static const char group[] = "constant_data";
    const em_design *design = self->design;
    em_datum *to = self->datum;

    if (self->standardised && !self->theta) {
        *to++ = (em_datum){group, em_per_coefficient(self, "feature_mean"),
                           self->prior ? self->mean : design->centre};
        *to++ = (em_datum){group, em_per_coefficient(self, "feature_sd"),
                           self->prior ? self->sd : design->scale};
    }
    if (!self->theta)
        to += em_regression_prior_data(self, to);
    if (self->features)
        to += em_features_data(self->features, to);
    if (self->line)
        *to++ = (em_datum){"predictions_constant_data",
                           per_observation(self, "line", EM_STORE_INT, EM_POSTERIOR), self->line};
    if (self->observed)
        *to++ = (em_datum){"observed_data",
                           per_observation(self, "y", self->family->storage, EM_POSTERIOR),
                           self->observed};
    self->model.datum = self->datum;
    self->model.n_datum = to - self->datum;
}

/* The constant that the log likelihood of an observation omits. */
static double constant_of_row(const em_regression *self, int64_t i, const double *shape)
{
    const em_design *design = self->design;

    return (design->weight ? design->weight[i] : 1) *
           (self->family->constant(design->response[i], shape) - log(self->unit));
}

static em_status prepare_reports(em_regression *self, const em_regression_options *options,
                                 const double *shape)
{
    const em_design *design = self->design;
    em_status status = EM_OK;

    self->predicts = options->posterior_predictive;
    if (options->log_likelihood || self->predicts)
        status = em_own_all(&self->memory, EM_ARRAY(self->eta, design->n_row),
                            EM_ARRAY(self->density, design->n_row));
    if (!status && options->log_likelihood)
        status = em_own_all(&self->memory, EM_ARRAY(self->constant, design->n_row));
    for (int64_t i = 0; !status && self->constant && i < design->n_row; i++)
        self->constant[i] = constant_of_row(self, i, shape);
    return status;
}

em_status em_regression_log_constants(em_model *model, const double *theta, double *prior,
                                      double *likelihood)
{
    const em_regression *self = (const em_regression *)model;
    const double places = 0x1p32; /* sums of integers do not depend on the shards */
    double shape[EM_GLM_SHAPES];
    int64_t sum = 0;
    em_status status = EM_OK;

    (void)theta;
    *prior = 0;
    for (int64_t j = 0; j < self->design->n_column; j++)
        *prior += self->prior ? em_prior_law_of(&self->prior[j])->constant(&self->prior[j])
                              : -log(2 * M_PI * self->prior_variance) / 2;
    for (int k = 0; k < self->n_shape; k++)
        shape[k] = self->shape[k].value;
    for (int k = 0; k < self->n_unknown; k++)
        *prior += em_prior_law_of(&self->unknown[k]->prior)->constant(&self->unknown[k]->prior) +
                  log(em_regression_unit(self, self->unknown[k]));
    for (int64_t i = 0; i < self->design->n_row; i++)
        sum += llround(places * constant_of_row(self, i, shape));
    if (self->shards)
        status = self->shards->sum(self->shards->context, EM_OK, 1, &sum);
    *likelihood = (double)sum / places;
    return status;
}

/* Finds an array of the run by name, and checks that it has one number for each coefficient. */
static em_status find_fitted(const em_fitted *fitted, const char *name, int64_t n_column,
                             const double **value)
{
    int64_t n = 0;
    em_status status = fitted->numbers(fitted->context, name, &n, value);

    if (!status && n != n_column)
        status = em_fail(EM_EDATA, "found %lld numbers of constant_data/%s, expected %lld",
                         (long long)n, name, (long long)n_column);
    return status;
}

static em_status create_fitted_design(em_regression *self, const em_table *table,
                                      const em_table_options *options,
                                      const em_model_context *context)
{
    const int64_t n = table->n_column + options->intercept;
    em_scaling scaling = {NULL, NULL};
    em_status status = EM_OK;

    if (options->standardise) {
        status = find_fitted(context->fitted, "feature_mean", n, &scaling.centre);
        status = status ? status : find_fitted(context->fitted, "feature_sd", n, &scaling.scale);
        status = em_agree_first(status, 0);
    }
    return status ? status
                  : em_design_create(table, options, &scaling, context->shard, context->n_shard,
                                     &self->design);
}

static em_status create_design(em_regression *self, const em_table *table,
                               const em_table_options *options, const em_model_context *context)
{
    em_scaling scaling = {NULL, NULL};

    if (context->fitted)
        return create_fitted_design(self, table, options, context);
    if (!self->prior)
        return em_design_create(table, options, NULL, context->shard, context->n_shard,
                                &self->design);
    em_status status = em_agree_first(
        em_regression_scaling(self, table->n_column + options->intercept, &scaling), 0);
    if (!status)
        status = em_design_create(table, options, &scaling, context->shard, context->n_shard,
                                  &self->design);
    em_release_all(&scaling.centre, &scaling.scale);
    return status;
}

static em_status prepare_design(em_regression *self, const em_table *table,
                                const em_regression_options *options,
                                const em_model_context *context, bool identity)
{
    em_table_options as = options->table;

    as.intercept = self->intercept;
    em_status status = create_design(self, table, &as, context);

    status = status ? status : em_regression_centre(self, identity);
    if (!status && self->unit != 1)
        em_design_scale(self->design, 1 / self->unit);
    if (!status && context->minibatches)
        status = em_design_store_rows(self->design);
    return status ? status
                  : em_own_all(&self->memory, EM_ARRAY(self->beta, self->design->n_column),
                               EM_ARRAY(self->row, self->design->n_column));
}

/* The names of the coefficients on the original scale, of which the first is the intercept. */
static em_status prepare_original(em_regression *self)
{
    const em_design *design = self->design;
    const bool intercept = self->intercept;

    if (!self->standardised)
        return EM_OK;
    self->n_original = design->n_column + !intercept;
    em_status status = em_own_all(&self->memory, EM_ARRAY(self->original, self->n_original));
    if (!status && !intercept)
        self->original[0] = "intercept";
    for (int64_t j = 0; !status && j < design->n_column; j++)
        self->original[j + !intercept] = design->name[j];
    return status;
}

static em_status prepare_predictions(em_regression *self)
{
    return em_own_all(&self->memory, EM_ARRAY(self->theta, self->design->n_column + self->n_shape),
                      EM_ARRAY(self->eta, self->design->n_row));
}

static void name_blocks(em_regression *self)
{
    const int64_t n_column = self->design->n_column;

    self->block[self->model.n_block++] = (em_parameters){"beta", 0, n_column, false};
    for (int k = 0; k < self->n_unknown; k++)
        self->block[self->model.n_block++] =
            (em_parameters){self->unknown[k]->name, n_column + k, 1, false};
    self->model.block = self->block;
}

em_status em_regression_create(em_regression *self, const em_table *table,
                               const em_regression_options *options,
                               const em_model_context *context, const em_regression_plan *plan)
{
    double shape[EM_GLM_SHAPES];
    em_status status = EM_OK;

    if (context->fitted)
        status = em_table_lines(table, &self->line);
    else if (options->log_likelihood || options->posterior_predictive)
        status = em_table_responses(table, &self->observed);
    if (status)
        return status;
    self->family = plan->family;
    self->shards = context->shards;
    self->unit_is_free = isnan(plan->unit);
    self->unit = self->unit_is_free ? 1 : plan->unit;
    self->n_shape = plan->n_shape;
    self->identity = plan->identity;
    self->standardised = options->table.standardise;
    self->intercept = self->features ? self->features->intercept : options->table.intercept;
    for (int k = 0; k < plan->n_shape; k++) {
        self->shape[k] = plan->shape[k];
        shape[k] = plan->shape[k].value;
        if (isnan(shape[k]))
            self->unknown[self->n_unknown++] = &self->shape[k];
    }
    if (!context->fitted)
        status = em_regression_find_priors(self, table, options, plan);
    status = status ? status : prepare_design(self, table, options, context, plan->identity);
    status = status ? status : em_glm_create(self->design, self->n_shape, shape, &self->glm);
    if (!status && !context->fitted)
        status = prepare_original(self);
    if (!status && !context->fitted)
        status = em_regression_say_priors(self);
    if (!status)
        status =
            context->fitted ? prepare_predictions(self) : prepare_reports(self, options, shape);
    if (status)
        return status;
    em_table_say_guess(table);
    self->model = (em_model){.ops = context->ops,
                             .dim = self->design->n_column + self->n_unknown,
                             .rows = self->design->rows,
                             .variable = self->variable,
                             .data_hash = self->design->hash};
    add_variables(self);
    add_data(self);
    name_blocks(self);
    return EM_OK;
}

void em_regression_destroy(em_model *model)
{
    em_regression *self = (em_regression *)model;

    em_release_owner(&self->glm);
    em_design_destroy(&self->design);
    em_features_destroy(&self->features);
    em_release_texts(self->n_line, &self->prior_line);
    em_release_all(&self->prior_count, &self->line, &self->observed);
    em_release_owned(&self->memory);
    em_release(&self);
}

/* ---------------------------------------------------------------- the posterior */

em_status em_regression_add_likelihood(em_model *model, const em_query *query)
{
    const em_regression *self = (const em_regression *)model;

    em_glm_add(self->glm, self->family->link, query);
    return EM_OK;
}

/* ---------------------------------------------------------------- the metric */

/* Adds weight x x^T to the lower triangle of a matrix [][dim], with x [n]. */
static void add_square(int64_t n, int64_t dim, double weight, const double *x, double *matrix)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t l = 0; l <= j; l++)
            matrix[j * dim + l] += weight * x[j] * x[l];
}

/* Adds to the metric the term of an observation in X^T Lambda X, where Lambda is the information of
 * each observation (Girolami & Calderhead 2011, section 7), and below it that of the shape
 * parameter. */
static void add_metric_of_row(const em_regression *self, int64_t i, const double *theta,
                              const double *shape, double *metric, double *derivative)
{
    const int64_t n = self->design->n_column, dim = self->model.dim;
    double *x = self->row, eta = self->design->offset ? self->design->offset[i] : 0;

    em_design_row(self->design, i, x);
    for (int64_t j = 0; j < n; j++)
        eta += x[j] * theta[j];
    em_information information = self->family->information(eta, shape);
    if (self->design->weight) {
        information.eta *= self->design->weight[i];
        information.by_eta *= self->design->weight[i];
        information.by_shape *= self->design->weight[i];
        information.shape *= self->design->weight[i];
    }
    add_square(n, dim, information.eta, x, metric);
    for (int64_t k = 0; derivative && k < n; k++)
        add_square(n, dim, information.by_eta * x[k], x, derivative + k * dim * dim);
    if (self->n_unknown > 0) {
        metric[n * dim + n] += information.shape;
        if (derivative)
            add_square(n, dim, information.by_shape, x, derivative + n * dim * dim);
    }
}

static void add_metric_of_prior(const em_regression *self, const em_shape *unknown,
                                const double *theta, double *metric, double *derivative)
{
    const int64_t n = self->design->n_column, dim = self->model.dim, corner = n * dim + n;
    double curvature[2];

    for (int64_t j = 0; j < n; j++)
        metric[j * dim + j] += self->prior
                                   ? em_prior_law_of(&self->prior[j])->information(&self->prior[j])
                                   : 1 / self->prior_variance;
    if (!unknown)
        return;
    em_prior_law_of(&unknown->prior)
        ->curvature(&unknown->prior, exp(theta[n]) * em_regression_unit(self, unknown), curvature);
    metric[corner] += curvature[0];
    if (derivative)
        derivative[n * dim * dim + corner] += curvature[1];
}

em_status em_regression_add_metric(em_model *model, bool prior, const em_rows *rows,
                                   const double *theta, double *metric, double *derivative)
{
    const em_regression *self = (const em_regression *)model;
    double shape[EM_GLM_SHAPES];
    const em_shape *unknown = self->n_unknown > 0 ? self->unknown[0] : NULL;

    if (!self->family->information || self->n_unknown > 1 || (unknown && !unknown->in_metric))
        return em_fail(EM_ECONFIG,
                       "model %s has a metric, which Riemannian samplers need, only if all "
                       "parameters but the coefficients are fixed",
                       model->ops->name);
    em_glm_shape(self->glm, theta, shape);
    for (int64_t i = rows ? rows->first : 0; rows && i < rows->first + rows->count; i++)
        add_metric_of_row(self, i, theta, shape, metric, derivative);
    if (prior)
        add_metric_of_prior(self, unknown, theta, metric, derivative);
    return EM_OK;
}

/* ---------------------------------------------------------------- regressions of counts */

em_status em_count_regression_set_up(em_model *model, const em_regression_options *options,
                                     const em_model_context *context,
                                     const em_regression_plan *plan)
{
    em_regression *self = (em_regression *)model;
    EM_SCOPED_BY(em_table_destroy) em_table *table = NULL;
    em_status status = em_features_read(&options->table, context->fitted, &table, &self->features);

    status = status ? status : em_table_check_counts(table);
    return status ? status : em_regression_create(self, table, options, context, plan);
}

em_status em_draw_count(em_variate *v, double mean, double *y)
{
    if (!(mean < EM_MOST_COUNT))
        return em_fail(EM_NONFINITE, "a response of mean %g is too large to be drawn", mean);
    *y = em_variate_poisson(v, mean);
    return EM_OK;
}
