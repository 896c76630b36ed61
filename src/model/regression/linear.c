/*
 * Bayesian linear regression (EQUATIONS 19): y ~ N(X beta, sigma^2 I), or with Student's t of nu
 * degrees of freedom in the place of the normal. Below, beta are the coefficients of the columns as
 * model/regression/regression_prior.h makes them, with the prior N(0, s I) of model.prior_scale.
 * With a known sigma X and y are divided by it once and for all, and sigma is 1 from there on. Of
 * normal noise, log p = -|y - X beta|^2 / (2 sigma^2) - n log sigma - |beta|^2 / (2 s) grad  = X^T
 * (y - X beta) / sigma^2 - beta / s,  by log sigma: |y - X beta|^2 / sigma^2 - n. All data enter
 * through X^T X and X^T y where these are kept, minibatches row by row: with Z = (X, y) and w =
 * (-beta, 1), Z w are the residuals, and Z^T Z w has minus the square and the gradient. With a
 * known sigma the posterior is exactly N(P^-1 X^T y, P^-1), P = X^T X + I / s.
 */
#include "base/memory.h"
#include "emass/model/metric.h"
#include "emass/model/summary.h"
#include "math/simd/panel.h"
#include "math/simd/vector.h"
#include "model/construct/construct.h"
#include "model/regression/regression.h"

#include <math.h>
#include <string.h>

enum noise { NOISE_NORMAL, NOISE_STUDENT_T };
static const char *const noises[] = {"normal", "student_t", NULL};

typedef struct linear_options {
    em_regression_options regression;
    int noise;
    double sigma, sigma_scale, nu;
} linear_options;

static const em_field fields[] = {
    EM_TABLE_FIELDS(NULL),
    EM_CHOICE(linear_options, noise, .fallback = "normal", .choices = noises,
              .doc = "distribution of the noise"),
    EM_REAL(linear_options, sigma, .minimum = 1e-300, .maximum = 1e300, .fallback = "unknown",
            .word = "unknown",
            .doc = "standard deviation of the noise (student_t: its scale): a number, or unknown"),
    EM_REAL(linear_options, sigma_scale, .minimum = 1e-300, .maximum = 1e300, .fallback = "none",
            .word = "none",
            .doc = "scale of a half Student-t prior of an unknown sigma, with 3 degrees of "
                   "freedom; replaces prior.sigma"),
    EM_REAL(linear_options, nu, .minimum = 1e-3, .maximum = 1e300, .fallback = "unknown",
            .word = "unknown",
            .doc = "degrees of freedom of student_t; unknown: its prior is Gamma(2, rate 0.1)"),
    EM_TABLE_WEIGHTS_FIELDS,
    EM_REGRESSION_FIELDS,
    {0}};

enum { SIGMA, NU }; /* shape parameters */

typedef struct linear {
    em_regression base;
    double *gram;          /* X^T X, [n_column][stride]; NULL: not kept, nor the next two */
    double *moment;        /* X^T y, [stride] */
    double squares;        /* y^T y */
    double n;              /* of all y: the sum of their weights */
    double *product;       /* work space of one panel, [EM_GLM_CHAINS][stride] */
    double *weights, *sum; /* of minibatches, [design->row_stride]: (-beta, 1), and X^T X of it */
} linear;

/* ---------------------------------------------------------------- families */

static void normal(const em_glm_tile *t)
{
    for (int64_t c = 0; c < t->n_chain; c++) {
        const double sigma = t->shape[c * EM_GLM_SHAPES + SIGMA], inverse = 1 / sigma;
        const double constant = t->slope[SIGMA] ? -log(sigma) : 0;
        double *eta = t->eta + c * EM_TILE_ROWS, *density = t->density + c * EM_TILE_ROWS;
        double *slope = t->slope[SIGMA] ? t->slope[SIGMA] + c * EM_TILE_ROWS : t->work[0];
        for (int64_t i = 0; i < EM_TILE_ROWS; i++) {
            const double z = (t->response[i] - eta[i]) * inverse;
            eta[i] = z * inverse;
            density[i] = constant - z * z / 2;
            slope[i] = z * z - 1;
        }
    }
}

static double normal_constant(double y, const double *shape)
{
    (void)y, (void)shape;
    return -0.5 * log(2 * M_PI);
}

static em_status normal_draw(em_variate *v, double eta, const double *shape, double *y)
{
    *y = eta + shape[SIGMA] * em_variate_normal(v);
    return EM_OK;
}

static em_information normal_information(double eta, const double *shape)
{
    const double precision = 1 / (shape[SIGMA] * shape[SIGMA]);

    (void)eta;
    return (em_information){.eta = precision, .by_shape = -2 * precision, .shape = 2};
}

static double mean(double eta)
{
    return eta;
}

static const em_family normal_family = {.link = normal,
                                        .constant = normal_constant,
                                        .mean = mean,
                                        .draw = normal_draw,
                                        .information = normal_information};

/* log(Gamma((nu + 1) / 2) / Gamma(nu / 2)) - log(nu / 2) / 2, and nu times its derivative. */
static double student_t_norm(double nu, double *slope)
{
    _Alignas(64) double half[EM_LANES], value[EM_LANES], slopes[EM_LANES];

    for (int i = 0; i < EM_LANES; i++)
        half[i] = 0.5;
    em_log_rising(EM_LANES, half, nu / 2, value, slopes);
    *slope = slopes[0];
    return value[0];
}

/* With z = (y - eta) / sigma, log p = norm(nu) - (nu + 1) / 2 log(1 + z^2 / nu) - log sigma. */
static void student_t_chain(const em_glm_tile *t, int64_t c)
{
    const double sigma = t->shape[c * EM_GLM_SHAPES + SIGMA], inverse = 1 / sigma;
    const double nu = t->shape[c * EM_GLM_SHAPES + NU];
    double *eta = t->eta + c * EM_TILE_ROWS, *density = t->density + c * EM_TILE_ROWS;
    double *by_sigma = (t->slope[SIGMA] ? t->slope[SIGMA] : t->work[0]) + c * EM_TILE_ROWS;
    double *by_nu = (t->slope[NU] ? t->slope[NU] : t->work[1]) + c * EM_TILE_ROWS;
    double norm = 0, norm_slope = 0;

    if (t->slope[NU])
        norm = student_t_norm(nu, &norm_slope);
    if (t->slope[SIGMA])
        norm -= log(sigma);
    for (int64_t i = 0; i < EM_TILE_ROWS; i++) {
        const double z = (t->response[i] - eta[i]) * inverse, weight = (nu + 1) / (nu + z * z);
        eta[i] = weight * z * inverse;
        by_sigma[i] = weight * z * z - 1;
        by_nu[i] = z * z / nu;
    }
    em_log1p(EM_TILE_ROWS, by_nu, density);
    for (int64_t i = 0; i < EM_TILE_ROWS; i++) {
        by_nu[i] = norm_slope + (by_sigma[i] + 1 - nu * density[i]) / 2;
        density[i] = norm - (nu + 1) / 2 * density[i];
    }
}

static void student_t(const em_glm_tile *t)
{
    for (int64_t c = 0; c < t->n_chain; c++)
        student_t_chain(t, c);
}

static double student_t_constant(double y, const double *shape)
{
    double slope;

    (void)y;
    return -0.5 * log(2 * M_PI) + (isnan(shape[NU]) ? 0 : student_t_norm(shape[NU], &slope));
}

static em_status student_t_draw(em_variate *v, double eta, const double *shape, double *y)
{
    const double nu = shape[NU], z = em_variate_normal(v);

    *y = eta + shape[SIGMA] * z / sqrt(2 * em_variate_gamma(v, nu / 2) / nu);
    return EM_OK;
}

/* The Fisher information of the Student t likelihood (Lange, Little and Taylor 1989, appendix B).
 */
static em_information student_t_information(double eta, const double *shape)
{
    const double nu = shape[NU], precision = 1 / (shape[SIGMA] * shape[SIGMA]);
    const double weight = (nu + 1) / (nu + 3) * precision;

    (void)eta;
    return (em_information){.eta = weight, .by_shape = -2 * weight, .shape = 2 * nu / (nu + 3)};
}

static const em_family student_t_family = {.link = student_t,
                                           .constant = student_t_constant,
                                           .mean = mean,
                                           .draw = student_t_draw,
                                           .information = student_t_information};

/* ---------------------------------------------------------------- sums over all data */

/* A link whose residual is the derivative by eta: sigma is 1 here. */
static void residual(const em_glm_tile *t)
{
    for (int64_t c = 0; c < t->n_chain; c++)
        for (int64_t i = 0; i < EM_TILE_ROWS; i++) {
            double *eta = &t->eta[c * EM_TILE_ROWS + i];
            *eta = t->response[i] - *eta;
            t->density[c * EM_TILE_ROWS + i] = -*eta * *eta / 2;
            if (t->slope[SIGMA])
                t->slope[SIGMA][c * EM_TILE_ROWS + i] = 0;
        }
}

/* A link whose derivative is eta itself, so that the gradient is X^T X theta. */
static void identity(const em_glm_tile *t)
{
    const size_t bytes = (size_t)(t->n_chain * EM_TILE_ROWS) * sizeof(double);

    memset(t->density, 0, bytes);
    if (t->slope[SIGMA])
        memset(t->slope[SIGMA], 0, bytes);
}

/* The sums over the data, from the kernels of the generalised linear model: at theta = 0 the
 * gradient is X^T y, and unit vectors give the rows of X^T X, eight in a chunk. */
static void add_summary(em_model *model, int64_t chunk, const em_rows *rows, double *sum)
{
    linear *self = (linear *)model;
    const int64_t n = self->base.design->n_column, stride = em_stride(model->dim);
    const int64_t row = (chunk - 1) * EM_GLM_CHAINS;
    double *unit = self->product, constant[EM_GLM_CHAINS] = {0};
    em_query query = {.n_chain = 1,
                      .stride = stride,
                      .theta = unit,
                      .log_density = constant,
                      .gradient = sum,
                      .rows = *rows};

    memset(unit, 0, (size_t)(EM_GLM_CHAINS * stride) * sizeof *unit);
    if (chunk == 0) {
        em_glm_add(self->base.glm, residual, &query);
        sum[stride] -= 2 * constant[0];
        for (int64_t i = rows->first; i < rows->first + rows->count; i++)
            sum[stride + 1] += self->base.design->weight ? self->base.design->weight[i] : 1;
        return;
    }
    query.n_chain = n - row < EM_GLM_CHAINS ? n - row : EM_GLM_CHAINS;
    for (int64_t c = 0; c < query.n_chain; c++)
        unit[c * stride + row + c] = 1;
    em_glm_add(self->base.glm, identity, &query);
}

static void take_summary(em_model *model, int64_t chunk, const double *sum)
{
    linear *self = (linear *)model;
    const int64_t stride = em_stride(model->dim), first = (chunk - 1) * EM_GLM_CHAINS;

    if (chunk == 0) {
        memcpy(self->moment, sum, (size_t)stride * sizeof *sum);
        self->squares = sum[stride];
        self->n = sum[stride + 1];
        return;
    }
    for (int64_t j = first; j < first + EM_GLM_CHAINS && j < self->base.design->n_column; j++)
        memcpy(self->gram + j * stride, sum + (j - first) * stride, (size_t)stride * sizeof *sum);
}

/* |y - X beta|^2 = y^T y - 2 beta^T (X^T y - X^T X beta / 2) for one panel of chains. */
static void add_all_rows(const linear *self, const em_query *query)
{
    const int64_t n = self->base.design->n_column, own = em_stride(self->base.model.dim);
    double shape[EM_GLM_SHAPES];

    em_panel_product(query->n_chain, n, n, query->theta, query->stride, self->gram, own,
                     self->product, own);
    for (int64_t c = 0; c < query->n_chain; c++) {
        const double *theta = query->theta + c * query->stride;
        double *gradient = query->gradient + c * query->stride;
        em_glm_shape(self->base.glm, theta, shape);
        const double precision = 1 / (shape[SIGMA] * shape[SIGMA]);
        double sum = -self->squares / 2;
        for (int64_t j = 0; j < n; j++) {
            double fitted = self->product[c * own + j];
            sum += theta[j] * (self->moment[j] - fitted / 2);
            gradient[j] += (self->moment[j] - fitted) * precision;
        }
        query->log_density[c] += sum * precision;
        if (self->base.n_unknown > 0) {
            query->log_density[c] -= self->n * log(shape[SIGMA]);
            gradient[n] -= 2 * sum * precision + self->n;
        }
    }
}

/* Adds the likelihood of a minibatch of one chain, for normal noise with sigma 1. The last eight
 * rows are completed with the row of zeros. */
static void add_listed(const linear *self, const em_rows *rows, const double *beta,
                       double *log_density, double *gradient)
{
    const em_design *design = self->base.design;
    const int64_t n = design->n_column, stride = design->row_stride;
    const int64_t whole = rows->count / EM_LANES * EM_LANES;
    double *w = self->weights, *sum = self->sum;
    int64_t last[EM_LANES];

    for (int64_t i = 0; i < EM_LANES; i++)
        last[i] = whole + i < rows->count ? rows->index[whole + i] : design->n_row;
    for (int64_t j = 0; j < n; j++)
        w[j] = -beta[j];
    w[n] = 1;
    memset(sum, 0, (size_t)stride * sizeof *sum);
    em_rows_gram(whole, rows->index, design->row, stride, w, sum);
    em_rows_gram(EM_LANES, last, design->row, stride, w, sum);
    for (int64_t j = 0; j <= n; j++)
        *log_density -= w[j] * sum[j] / 2;
    for (int64_t j = 0; j < n; j++)
        gradient[j] += sum[j];
}

static em_status add_likelihood(em_model *model, const em_query *query)
{
    const linear *self = (const linear *)model;

    if (query->rows.index && self->weights)
        for (int64_t c = 0; c < query->n_chain; c++)
            add_listed(self, &query->rows, query->theta + c * query->stride, query->log_density + c,
                       query->gradient + c * query->stride);
    else if (!query->rows.all)
        return em_regression_add_likelihood(model, query);
    else
        for (int64_t c = 0; c < query->n_chain; c += EM_GLM_CHAINS) {
            const em_query panel = em_query_panel(query, c, EM_GLM_CHAINS);
            add_all_rows(self, &panel);
        }
    return EM_OK;
}

/* Adds the metric. For all rows it uses the weighted X^T X, if that is kept. */
static em_status add_metric(em_model *model, bool prior, const em_rows *rows, const double *theta,
                            double *metric, double *derivative)
{
    const linear *self = (const linear *)model;
    const int64_t n = self->base.design->n_column, dim = model->dim, stride = em_stride(dim);
    double shape[EM_GLM_SHAPES];

    if (!rows || !rows->all)
        return em_regression_add_metric(model, prior, rows, theta, metric, derivative);
    em_glm_shape(self->base.glm, theta, shape);
    const em_information information = normal_information(0, shape);
    for (int64_t j = 0; j < n; j++)
        for (int64_t l = 0; l <= j; l++) {
            metric[j * dim + l] += information.eta * self->gram[j * stride + l];
            if (derivative && dim > n)
                derivative[(n * dim + j) * dim + l] +=
                    information.by_shape * self->gram[j * stride + l];
        }
    if (dim > n)
        metric[n * dim + n] += self->n * information.shape;
    return em_regression_add_metric(model, prior, NULL, theta, metric, derivative);
}

/* ---------------------------------------------------------------- set up */

static em_regression_plan plan_of(const linear_options *options)
{
    const bool is_normal = options->noise == NOISE_NORMAL, scaled = !isnan(options->sigma_scale);
    const em_prior half_t = {EM_PRIOR_HALF_STUDENT_T, 3, 0, scaled ? options->sigma_scale : 2.5};
    const em_prior of_nu = {EM_PRIOR_GAMMA, 2, 0, 0.1};
    const em_shape sigma = {.name = "sigma",
                            .value = isnan(options->sigma) ? NAN : 1,
                            .prior = scaled ? half_t : (em_prior){EM_PRIOR_EXPONENTIAL, 1, 0, 1},
                            .earlier = half_t,
                            .prior_given = scaled,
                            .of_response = true,
                            .in_metric = true};
    const em_shape nu = {.name = "nu", .value = options->nu, .prior = of_nu, .earlier = of_nu};

    return (em_regression_plan){.family = is_normal ? &normal_family : &student_t_family,
                                .identity = true,
                                .unit = options->sigma,
                                .n_shape = is_normal ? 1 : 2,
                                .shape = {[SIGMA] = sigma, [NU] = nu}};
}

/* Decides whether to keep X^T X. It is worth its memory if it has fewer numbers than X and all rows
 * are evaluated many times; minibatches and sparse rows do not use it. */
static em_status keep_sums(linear *self)
{
    const int64_t n = self->base.design->n_column, stride = em_stride(self->base.model.dim);
    self->base.model.n_chunk = 1 + (n + EM_GLM_CHAINS - 1) / EM_GLM_CHAINS;
    self->base.model.chunk_size = EM_GLM_CHAINS * em_stride(self->base.model.dim + 1);
    return em_own_all(&self->base.memory, EM_ARRAY(self->gram, n * stride),
                      EM_ARRAY(self->moment, stride),
                      EM_ARRAY(self->product, EM_GLM_CHAINS * stride));
}

static em_status prepare(linear *self, const linear_options *options, bool minibatches)
{
    const em_design *design = self->base.design;
    const int64_t n = design->n_column;

    if (options->noise != NOISE_NORMAL || design->sparse || (minibatches && design->weight))
        return EM_OK;
    if (!minibatches && n <= design->rows.total)
        return keep_sums(self);
    if (!minibatches || self->base.n_unknown > 0)
        return EM_OK;
    return em_own_all(&self->base.memory, EM_ARRAY(self->weights, em_stride(n + 1)),
                      EM_ARRAY(self->sum, em_stride(n + 1)));
}

static em_status set_up(em_model *model, const void *untyped, const em_model_context *context)
{
    linear *self = (linear *)model;
    const linear_options *options = untyped;
    const em_regression_options *regression = &options->regression;
    const em_regression_plan plan = plan_of(options);
    EM_SCOPED_BY(em_table_destroy) em_table *table = NULL;

    if (options->noise == NOISE_NORMAL && !isnan(options->nu))
        return em_fail(EM_ECONFIG, "model.nu: found %g for normal noise, expected noise: student_t",
                       options->nu);
    em_status status =
        em_features_read(&regression->table, context->fitted, &table, &self->base.features);
    status = status ? status : em_regression_create(&self->base, table, regression, context, &plan);
    if (!status && !context->fitted)
        status = prepare(self, options, context->minibatches);
    return status;
}

const em_model_ops em_model_linear = {
    .name = "linear",
    .doc = "Bayesian linear regression, normal or Student-t noise, priors on the scale of the data",
    .source = "Gelman et al., Bayesian Data Analysis, sections 14.2 and 17.5",
    .options_size = sizeof(linear_options),
    .fields = fields,
    .create = em_model_build,
    .state = &(const em_construction){sizeof(linear), set_up},
    .destroy = em_regression_destroy,
    .add_likelihood = add_likelihood,
    .summary = &(const em_model_summary){.add = add_summary, .take = take_summary},
    .metric = &(const em_model_metric){.add = add_metric},
    EM_REGRESSION_OPS};
