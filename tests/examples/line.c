/*
 * A plug-in that reads a table: y ~ normal(beta_0 + beta_1 x, sigma), with two blocks of
 * parameters, the log likelihood of each observation, and each drawn anew.
 *
 *     cc -shared -fPIC line.c $(pkg-config --cflags emass) -lm -o line.so
 *
 *     model: {name: line, library: ./line.so, data: heights.csv}       with columns x and y
 *     sampler:
 *       - {block: coefficients, name: hmc}
 *       - {block: noise, name: nuts}
 */
#include <emass/data.h>
#include <emass/plugin.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    char *data;
    double prior_scale;
} options;

static const em_field fields[] = {
    EM_PATH(options, data, .doc = "table with the columns x and y"),
    EM_REAL(options, prior_scale, .minimum = 1e-300, .maximum = 1e300, .fallback = "10",
            .doc = "variance of the normal prior of each coefficient"),
    {0}};

enum { COEFFICIENTS, NOISE, N_BLOCK };
enum { BETA, SIGMA, LOG_LIKELIHOOD, PREDICTED, N_VARIABLE };

static const em_parameters blocks[N_BLOCK] = {
    [COEFFICIENTS] = {"coefficients", 0, 2}, [NOISE] = {"noise", 2, 1}};
static const char *const coefficients[] = {"intercept", "slope"};

typedef struct line {
    em_model model; /* the first member */
    em_data *data;
    int64_t x, y; /* columns */
    double prior_scale;
    em_variable variable[N_VARIABLE];
} line;

/* Observation i of this rank: its residual from the line at theta. */
static double residual(const line *self, const double *theta, int64_t i, double *x)
{
    const double *row = self->data->value + i * self->data->n_column;

    *x = row[self->x];
    return row[self->y] - theta[0] - theta[1] * *x;
}

static void destroy(em_model *model)
{
    em_data_destroy(&((line *)model)->data);
    free(model);
}

/* What is reported: parameters and, of each observation, two numbers. These are sharded: a rank
 * writes those of its own. */
static void describe_variables(line *self)
{
    const em_variable of_observations = {
        .name = "y", .sharded = true, .n_axes = 1, .shape = {self->data->rows.total}};

    self->variable[BETA] = (em_variable){
        .name = "beta", .n_axes = 1, .shape = {2}, .axis = {"term"}, .label = {coefficients}};
    self->variable[SIGMA] = (em_variable){.name = "sigma", .bounds = EM_ABOVE(0)};
    self->variable[LOG_LIKELIHOOD] = self->variable[PREDICTED] = of_observations;
    self->variable[LOG_LIKELIHOOD].group = EM_LOG_LIKELIHOOD;
    self->variable[PREDICTED].group = EM_POSTERIOR_PREDICTIVE;
}

static em_status create(const void *given, const em_model_context *context, em_model **out)
{
    const options *o = given;
    em_data *data;
    em_status status = em_data_read(o->data, context, &data);

    if (status)
        return status;
    line *self = calloc(1, sizeof *self);
    if (!self) {
        em_data_destroy(&data);
        return em_fail(EM_EMEMORY, "out of memory");
    }
    *self = (line){.model = {.ops = context->ops,
                             .n_parameter = 2,
                             .parameter = self->variable,
                             .n_block = N_BLOCK,
                             .block = blocks,
                             .rows = data->rows,
                             .data_hash = data->hash,
                             .n_variable = N_VARIABLE,
                             .variable = self->variable},
                   .data = data,
                   .x = em_data_column(data, "x"),
                   .y = em_data_column(data, "y"),
                   .prior_scale = o->prior_scale};
    describe_variables(self);
    if (self->x < 0 || self->y < 0) {
        destroy(&self->model);
        return em_fail(EM_EDATA, "%s: found no columns x and y", o->data);
    }
    *out = &self->model;
    return EM_OK;
}

/* beta ~ N(0, prior_scale); sigma half Student-t of 3 degrees of freedom and scale 2.5. */
static em_status add_prior(em_model *model, const em_query *query)
{
    const line *self = (const line *)model;

    for (int64_t c = 0; c < query->n_chain; c++) {
        const double *theta = query->theta + c * query->stride, sigma = theta[2];
        double *gradient = query->gradient + c * query->stride;
        const double square = sigma * sigma / (3 * 2.5 * 2.5);

        for (int64_t j = 0; j < 2; j++) {
            query->log_density[c] -= theta[j] * theta[j] / (2 * self->prior_scale);
            gradient[j] -= theta[j] / self->prior_scale;
        }
        query->log_density[c] -= 2 * log1p(square);
        gradient[2] -= 4 * square / (1 + square) / sigma;
    }
    return EM_OK;
}

static em_status add_likelihood(em_model *model, const em_query *query)
{
    const line *self = (const line *)model;

    for (int64_t c = 0; c < query->n_chain; c++) {
        const double *theta = query->theta + c * query->stride, sigma = theta[2];
        double *gradient = query->gradient + c * query->stride;

        for (int64_t k = 0; k < query->rows.count; k++) {
            double x;
            const double z = residual(self, theta, em_row(&query->rows, k), &x) / sigma;
            query->log_density[c] -= z * z / 2 + log(sigma);
            gradient[0] += z / sigma;
            gradient[1] += z / sigma * x;
            gradient[2] += (z * z - 1) / sigma;
        }
    }
    return EM_OK;
}

static em_status report(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    const line *self = (const line *)model;
    const em_share *rows = &self->data->rows;
    const double sigma = theta[2], half_log_2_pi = 0.91893853320467274;
    double *log_likelihood = out + 3, *predicted = log_likelihood + rows->total;

    memcpy(out, theta, 3 * sizeof *out);
    for (int64_t i = 0; i < 2 * rows->total; i++)
        log_likelihood[i] = -0.0; /* of other ranks */
    em_draw_normals(draw, (uint64_t)rows->first, rows->count, predicted + rows->first);
    for (int64_t i = 0; i < rows->count; i++) {
        double x;
        const double z = residual(self, theta, i, &x) / sigma;
        log_likelihood[rows->first + i] = -z * z / 2 - log(sigma) - half_log_2_pi;
        predicted[rows->first + i] = theta[0] + theta[1] * x + sigma * predicted[rows->first + i];
    }
    return EM_OK;
}

EMASS_PLUGIN({.name = "line",
              .doc = "a straight line through the points of a table",
              .options_size = sizeof(options),
              .fields = fields,
              .create = create,
              .destroy = destroy,
              .add_prior = add_prior,
              .add_likelihood = add_likelihood,
              .report = report});
