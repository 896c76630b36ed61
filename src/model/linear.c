/*
 * Bayesian linear regression with known noise (EQUATIONS 19): y ~ N(X beta, sigma^2 I),
 * beta ~ N(0, s I), so that with X and y divided by sigma once and for all
 *     log p = -|y - X beta|^2 / 2 - |beta|^2 / (2 s)
 *     grad  = X^T (y - X beta) - beta / s.
 * All data enter through X^T X and X^T y where these are kept, minibatches row by row: with Z = (X,
 * y) and w = (-beta, 1), Z w are the residuals, and Z^T Z w has minus the square and the gradient.
 * The posterior is exactly N(P^-1 X^T y, P^-1), P = X^T X + I / s.
 */
#include "base/memory.h"
#include "data/design.h"
#include "emass/model.h"
#include "math/panel.h"
#include "model/glm.h"

#include <string.h>

extern const em_model_ops em_model_linear; /* at the end */

typedef struct linear_options {
    em_table_options table;
    double sigma, prior_scale;
} linear_options;

#define AT(member) offsetof(linear_options, member)
static const em_field fields[] = {EM_TABLE_FIELDS(NULL),
                                  {"sigma", EM_FIELD_REAL, AT(sigma), 1e-300, 1e300, "1", NULL,
                                   NULL, "standard deviation of the noise"},
                                  {"prior_scale", EM_FIELD_REAL, AT(prior_scale), 1e-300, 1e300,
                                   "10", NULL, NULL,
                                   "variance of the normal prior on every coefficient"},
                                  {NULL, EM_FIELD_BOOL, 0, 0, 0, NULL, NULL, NULL, NULL}};

typedef struct linear {
    em_model model;
    em_variable variable;
    double prior_variance;
    em_design *design; /* divided by sigma */
    em_glm *glm;
    double *gram;          /* X^T X, [dim][stride]; NULL: not kept, nor the next two */
    double *moment;        /* X^T y, [stride] */
    double squares;        /* y^T y */
    double *product;       /* work space of one panel, [EM_GLM_CHAINS][stride] */
    double *weights, *sum; /* of minibatches, [design->row_stride]: (-beta, 1), and X^T X of it */
} linear;

/* eta becomes the residual. */
static void normal(int64_t n_chain, const double *response, double *eta, double *density)
{
    for (int64_t c = 0; c < n_chain; c++, eta += EM_TILE_ROWS, density += EM_TILE_ROWS)
        for (int64_t i = 0; i < EM_TILE_ROWS; i++) {
            eta[i] = response[i] - eta[i];
            density[i] = -eta[i] * eta[i] / 2;
        }
}

/* With eta as its own derivative, the gradient is X^T X theta. */
static void identity(int64_t n_chain, const double *response, double *eta, double *density)
{
    (void)response, (void)eta;
    memset(density, 0, (size_t)(n_chain * EM_TILE_ROWS) * sizeof *density);
}

/* The sums over the data, from the kernels of the generalised linear model: at theta = 0 the
 * gradient is X^T y, and unit vectors give the rows of X^T X, eight in a piece. */
static void add_summary(em_model *model, int64_t piece, const em_rows *rows, double *sum)
{
    linear *self = (linear *)model;
    const int64_t dim = model->dim, stride = em_stride(dim), row = (piece - 1) * EM_GLM_CHAINS;
    double *unit = self->product, constant[EM_GLM_CHAINS] = {0};
    em_query query = {.n_chain = 1,
                      .stride = stride,
                      .theta = unit,
                      .log_density = constant,
                      .gradient = sum,
                      .rows = *rows};

    memset(unit, 0, (size_t)(EM_GLM_CHAINS * stride) * sizeof *unit);
    if (piece == 0) {
        em_glm_add(self->glm, normal, &query);
        sum[stride] -= 2 * constant[0];
        return;
    }
    query.n_chain = dim - row < EM_GLM_CHAINS ? dim - row : EM_GLM_CHAINS;
    for (int64_t c = 0; c < query.n_chain; c++)
        unit[c * stride + row + c] = 1;
    em_glm_add(self->glm, identity, &query);
}

static void take_summary(em_model *model, int64_t piece, const double *sum)
{
    linear *self = (linear *)model;
    const int64_t stride = em_stride(model->dim), first = (piece - 1) * EM_GLM_CHAINS;

    if (piece == 0) {
        memcpy(self->moment, sum, (size_t)stride * sizeof *sum);
        self->squares = sum[stride];
        return;
    }
    for (int64_t j = first; j < first + EM_GLM_CHAINS && j < model->dim; j++)
        memcpy(self->gram + j * stride, sum + (j - first) * stride, (size_t)stride * sizeof *sum);
}

static em_status load(linear *self, const linear_options *options, const em_model_context *context)
{
    em_table *table = NULL;
    em_status status = em_table_read(&options->table, &table);

    if (!status)
        status = em_table_take_response(table, &options->table);
    if (!status)
        status = em_design_create(table, &options->table, context->shard, context->n_shard,
                                  &self->design);
    if (!status)
        em_design_scale(self->design, 1 / options->sigma);
    if (!status && context->minibatches)
        status = em_design_store_rows(self->design);
    em_table_destroy(&table);
    return status;
}

/* X^T X is worth its space where it has fewer numbers than X and all rows are asked for again and
 * again; minibatches and sparse rows do without. */
static em_status prepare(linear *self, bool minibatches)
{
    const int64_t dim = self->design->n_column, stride = em_stride(dim);
    const bool keeps = !minibatches && !self->design->sparse && dim <= self->design->rows.total;
    em_status status = em_glm_create(self->design, &self->glm);

    if (!status && keeps)
        status = em_allocate(dim * stride, sizeof *self->gram, &self->gram);
    if (!status && keeps)
        status = em_allocate(stride, sizeof *self->moment, &self->moment);
    if (!status && keeps)
        status = em_allocate_doubles(EM_GLM_CHAINS * stride, &self->product);
    if (!status)
        status = em_allocate(em_stride(dim + 1), sizeof(double), &self->weights);
    if (!status)
        status = em_allocate(em_stride(dim + 1), sizeof(double), &self->sum);
    return status;
}

static void destroy(em_model *model)
{
    linear *self = (linear *)model;

    em_glm_destroy(&self->glm);
    em_design_destroy(&self->design);
    em_release(&self->gram);
    em_release(&self->moment);
    em_release(&self->product);
    em_release(&self->weights);
    em_release(&self->sum);
    em_release(&self);
}

static em_status create(const void *untyped, const em_model_context *context, em_model **out)
{
    const linear_options *options = untyped;
    linear *self;
    em_status status = em_allocate(1, sizeof *self, &self);

    if (status)
        return status;
    status = load(self, options, context);
    if (!status)
        status = prepare(self, context->minibatches);
    if (status) {
        destroy(&self->model);
        return status;
    }
    self->prior_variance = options->prior_scale;
    self->variable = em_glm_variable(self->design);
    self->model = (em_model){.ops = &em_model_linear,
                             .dim = self->design->n_column,
                             .rows = self->design->rows,
                             .n_variable = 1,
                             .variable = &self->variable,
                             .data_hash = self->design->hash};
    if (self->gram) {
        self->model.n_piece = 1 + (self->model.dim + EM_GLM_CHAINS - 1) / EM_GLM_CHAINS;
        self->model.piece_size = EM_GLM_CHAINS * em_stride(self->model.dim + 1);
    }
    *out = &self->model;
    return EM_OK;
}

static em_status add_prior(em_model *model, const em_query *query)
{
    em_glm_add_prior(model->dim, ((const linear *)model)->prior_variance, query);
    return EM_OK;
}

/* -|y - X beta|^2 / 2 = -y^T y / 2 + beta^T (X^T y - X^T X beta / 2) for one panel of chains. */
static void add_all_rows(const linear *self, const em_query *query)
{
    const int64_t dim = self->model.dim, own = em_stride(dim);

    em_panel_product(query->n_chain, dim, dim, query->theta, query->stride, self->gram, own,
                     self->product, own);
    for (int64_t c = 0; c < query->n_chain; c++) {
        const double *theta = query->theta + c * query->stride;
        double *gradient = query->gradient + c * query->stride;
        double sum = -self->squares / 2;
        for (int64_t j = 0; j < dim; j++) {
            double fitted = self->product[c * own + j];
            sum += theta[j] * (self->moment[j] - fitted / 2);
            gradient[j] += self->moment[j] - fitted;
        }
        query->log_density[c] += sum;
    }
}

/* The minibatch of one chain; what the last eight rows lack is made up by the row of zeros. */
static void add_listed(const linear *self, const em_rows *rows, const double *beta,
                       double *log_density, double *gradient)
{
    const int64_t dim = self->model.dim, stride = self->design->row_stride;
    const int64_t whole = rows->count / EM_LANES * EM_LANES;
    const double *x = self->design->row;
    double *w = self->weights, *sum = self->sum;
    int64_t last[EM_LANES];

    for (int64_t i = 0; i < EM_LANES; i++)
        last[i] = whole + i < rows->count ? rows->index[whole + i] : self->design->n_row;
    for (int64_t j = 0; j < dim; j++)
        w[j] = -beta[j];
    w[dim] = 1;
    memset(sum, 0, (size_t)stride * sizeof *sum);
    em_rows_gram(whole, rows->index, x, stride, w, sum);
    em_rows_gram(EM_LANES, last, x, stride, w, sum);
    for (int64_t j = 0; j <= dim; j++)
        *log_density -= w[j] * sum[j] / 2;
    for (int64_t j = 0; j < dim; j++)
        gradient[j] += sum[j];
}

static em_status add_likelihood(em_model *model, const em_query *query)
{
    const linear *self = (const linear *)model;

    if (query->rows.index && !self->design->sparse)
        for (int64_t c = 0; c < query->n_chain; c++)
            add_listed(self, &query->rows, query->theta + c * query->stride, query->log_density + c,
                       query->gradient + c * query->stride);
    else if (!query->rows.all)
        em_glm_add(self->glm, normal, query);
    else
        for (int64_t c = 0; c < query->n_chain; c += EM_GLM_CHAINS) {
            const em_query panel = em_query_panel(query, c, EM_GLM_CHAINS);
            add_all_rows(self, &panel);
        }
    return EM_OK;
}

static em_status report(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    (void)draw;
    memcpy(out, theta, (size_t)model->dim * sizeof *out);
    return EM_OK;
}

const em_model_ops em_model_linear = {
    .name = "linear",
    .doc = "Bayesian linear regression with known noise, normal prior on all coefficients",
    .source = "Gelman et al., Bayesian Data Analysis, section 14.2",
    .options_size = sizeof(linear_options),
    .fields = fields,
    .create = create,
    .destroy = destroy,
    .add_prior = add_prior,
    .report = report,
    .add_likelihood = add_likelihood,
    .add_summary = add_summary,
    .take_summary = take_summary};
