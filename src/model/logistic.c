/*
 * Bayesian logistic regression (EQUATIONS 20): y_i ~ Bernoulli(sigma(x_i . beta)), beta ~ N(0,
 * alpha I), so that
 *     log p = sum_i [y_i a_i - log(1 + e^{a_i})] - |beta|^2 / (2 alpha),  a = X beta,
 *     grad  = X^T (y - sigma(a)) - beta / alpha.
 */
#include "base/memory.h"
#include "data/design.h"
#include "emass/model.h"
#include "math/rng.h"
#include "math/vector.h"
#include "model/glm.h"

#include <math.h>
#include <string.h>

extern const em_model_ops em_model_logistic; /* at the end */

enum label_rule { LABELS_BERNOULLI, LABELS_LINEAR };
static const char *const label_rules[] = {"bernoulli", "linear", NULL};

typedef struct logistic_options {
    em_table_options table;
    double positive, prior_scale;
    int64_t n;
    int labels;
} logistic_options;

#define AT(member) offsetof(logistic_options, member)
static const em_field fields[] = {
    EM_TABLE_FIELDS(""),
    {"positive", EM_FIELD_REAL, AT(positive), 0, 0, "auto", NULL, "auto",
     "label that counts as 1, any other as 0; auto: labels are 0 and 1, or -1 and 1"},
    {"prior_scale", EM_FIELD_REAL, AT(prior_scale), 1e-300, 1e300, "10", NULL, NULL,
     "variance of the normal prior on every coefficient, alpha in the papers"},
    {"n", EM_FIELD_INT, AT(n), 1, 1e12, "2000", NULL, NULL,
     "without data: points to generate, from normals around (1, -1) and (-1, 1)"},
    {"labels", EM_FIELD_CHOICE, AT(labels), 0, 0, "bernoulli", label_rules, NULL,
     "without data: drawn with logit x1 - x2, or its sign (linear: the classes separate)"},
    {NULL, EM_FIELD_BOOL, 0, 0, 0, NULL, NULL, NULL, NULL}};

typedef struct logistic {
    em_model model;
    em_variable variable;
    double prior_variance;
    em_design *design;
    em_glm *glm;
    double *row; /* [dim] of the design, for the metric */
} logistic;

/* Rows (x1, x2, y) from work space: two normals, and a uniform each for component and label. */
static void draw_points(const logistic_options *options, uint64_t seed, double *uniform,
                        double *normal, double *row)
{
    em_stream stream = {seed, EM_ALL_CHAINS, 0, EM_RNG_DATA};

    em_normals(&stream, 2 * options->n, normal);
    stream.iteration = 1;
    em_uniforms(&stream, 0, 2 * options->n, uniform);
    for (int64_t i = 0; i < options->n; i++) {
        double side = uniform[2 * i] < 0.5 ? 1 : -1;
        double x1 = side + normal[2 * i], x2 = -side + normal[2 * i + 1];
        double p = options->labels == LABELS_LINEAR ? x1 > x2 : 1 / (1 + exp(x2 - x1));
        row[3 * i] = x1;
        row[3 * i + 1] = x2;
        row[3 * i + 2] = uniform[2 * i + 1] < p;
    }
}

static em_status generate(const logistic_options *options, uint64_t seed, em_table **table)
{
    double *uniform = NULL, *normal = NULL, *row = NULL;
    em_status status = em_allocate_doubles(2 * options->n, &uniform);

    if (!status)
        status = em_allocate_doubles(em_stride(2 * options->n), &normal);
    if (!status)
        status = em_allocate_doubles(3 * options->n, &row);
    if (!status) {
        draw_points(options, seed, uniform, normal, row);
        status = em_table_generate("generated data", options->n, 3, row, table);
    }
    em_release(&uniform);
    em_release(&normal);
    em_release(&row);
    return status;
}

static em_status load(const logistic_options *options, const em_model_context *context,
                      em_design **design)
{
    em_table *table = NULL;
    em_status status = options->table.data ? em_table_read(&options->table, &table)
                                           : generate(options, context->seed, &table);

    if (!status)
        status = em_table_take_response(table, &options->table);
    if (!status)
        status = em_table_binary_response(table, options->positive);
    if (!status)
        status = em_design_create(table, &options->table, context->shard, context->n_shard, design);
    if (!status && context->minibatches)
        status = em_design_store_rows(*design);
    em_table_destroy(&table);
    return status;
}

static void destroy(em_model *model)
{
    logistic *self = (logistic *)model;

    em_glm_destroy(&self->glm);
    em_design_destroy(&self->design);
    em_release(&self->row);
    em_release(&self);
}

static em_status create(const void *untyped, const em_model_context *context, em_model **out)
{
    const logistic_options *options = untyped;
    logistic *self;
    em_status status = em_allocate(1, sizeof *self, &self);

    if (status)
        return status;
    status = load(options, context, &self->design);
    if (!status)
        status = em_glm_create(self->design, &self->glm);
    if (!status)
        status = em_allocate_doubles(self->design->n_column, &self->row);
    if (status) {
        destroy(&self->model);
        return status;
    }
    self->prior_variance = options->prior_scale;
    self->variable = em_glm_variable(self->design);
    self->model = (em_model){.ops = &em_model_logistic,
                             .dim = self->design->n_column,
                             .rows = self->design->rows,
                             .n_variable = 1,
                             .variable = &self->variable,
                             .data_hash = self->design->hash};
    *out = &self->model;
    return EM_OK;
}

static em_status add_prior(em_model *model, const em_query *query)
{
    em_glm_add_prior(model->dim, ((const logistic *)model)->prior_variance, query);
    return EM_OK;
}

/* Both labels in one formula: with s = 1 for y = 0 and -1 for y = 1, log p = -log(1 + e^{s a}),
 * whose derivative by a is -s sigma(s a). */
static void bernoulli(int64_t n_chain, const double *response, double *eta, double *density)
{
    for (int64_t c = 0; c < n_chain; c++)
        for (int64_t i = 0; i < EM_TILE_ROWS; i++)
            eta[c * EM_TILE_ROWS + i] *= 1 - 2 * response[i];
    em_logistic(n_chain * EM_TILE_ROWS, eta, density, eta);
    for (int64_t c = 0; c < n_chain; c++)
        for (int64_t i = 0; i < EM_TILE_ROWS; i++) {
            density[c * EM_TILE_ROWS + i] *= -1;
            eta[c * EM_TILE_ROWS + i] *= 2 * response[i] - 1;
        }
}

static em_status add_likelihood(em_model *model, const em_query *query)
{
    em_glm_add(((logistic *)model)->glm, bernoulli, query);
    return EM_OK;
}

static void copy_row(const em_design *x, int64_t i, double *row)
{
    if (x->sparse) {
        memset(row, 0, (size_t)x->n_column * sizeof *row);
        for (int64_t k = x->start[i]; k < x->start[i + 1]; k++)
            row[x->column[k]] = x->value[k];
        return;
    }
    const double *tile = x->dense.tile + i / EM_TILE_ROWS * x->n_column * EM_TILE_ROWS;
    for (int64_t j = 0; j < x->n_column; j++)
        row[j] = tile[j * EM_TILE_ROWS + i % EM_TILE_ROWS];
}

/* The lower triangle of `matrix` += weight x x^T. */
static void add_square(int64_t dim, double weight, const double *x, double *matrix)
{
    for (int64_t j = 0; j < dim; j++)
        for (int64_t l = 0; l <= j; l++)
            matrix[j * dim + l] += weight * x[j] * x[l];
}

/* G = X^T Lambda X + I / alpha with Lambda = sigma (1 - sigma), whose derivative by a is
 * sigma (1 - sigma) (1 - 2 sigma) (Girolami & Calderhead 2011, section 7). */
static em_status add_metric(em_model *model, bool prior, const em_rows *rows, const double *theta,
                            double *metric, double *derivative)
{
    const logistic *self = (const logistic *)model;
    const int64_t dim = model->dim;
    double *x = self->row;

    for (int64_t i = rows ? rows->first : 0; rows && i < rows->first + rows->count; i++) {
        double a = 0;
        copy_row(self->design, i, x);
        for (int64_t j = 0; j < dim; j++)
            a += x[j] * theta[j];
        const double sigma = 1 / (1 + exp(-a)), weight = sigma * (1 - sigma);
        add_square(dim, weight, x, metric);
        for (int64_t k = 0; derivative && k < dim; k++)
            add_square(dim, weight * (1 - 2 * sigma) * x[k], x, derivative + k * dim * dim);
    }
    for (int64_t j = 0; prior && j < dim; j++)
        metric[j * dim + j] += 1 / self->prior_variance;
    return EM_OK;
}

static em_status report(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    (void)draw;
    memcpy(out, theta, (size_t)model->dim * sizeof *out);
    return EM_OK;
}

const em_model_ops em_model_logistic = {
    .name = "logistic",
    .doc = "Bayesian logistic regression, normal prior on all coefficients",
    .source = "Girolami & Calderhead (2011), section 7; Roychowdhury & Parthasarathy (2017), "
              "section 4.2",
    .options_size = sizeof(logistic_options),
    .fields = fields,
    .create = create,
    .destroy = destroy,
    .add_prior = add_prior,
    .report = report,
    .add_likelihood = add_likelihood,
    .add_metric = add_metric};
