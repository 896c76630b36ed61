/*
 * Mean and precision of normal data (EQUATIONS 18): x_i ~ N(mu, 1 / tau), flat prior on mu,
 * tau ~ Wishart(1, 1), which in one dimension is Gamma(1/2, rate 1/2). With eta = log tau, whose
 * Jacobian adds eta,
 *     log prior      = eta / 2 - tau / 2,
 *     log likelihood = n eta / 2 - tau / 2 sum_i (x_i - mu)^2.
 */
#include "base/memory.h"
#include "data/shard/redistribute_rows.h"
#include "data/shard/shard_assignment.h"
#include "emass/model/metric.h"
#include "emass/model/prior.h"
#include "emass/model/summary.h"
#include "emass/random.h"
#include "math/rng.h"
#include "math/simd/panel.h"
#include "model/construct/construct.h"
#include "par/message.h"

#include <math.h>

typedef struct normal_wishart_options {
    char *data;
    int64_t n;
    bool log_likelihood, posterior_predictive;
} normal_wishart_options;

static const em_field fields[] = {
    EM_PATH(normal_wishart_options, data, .fallback = "",
            .doc = "one column of numbers: text, plain or .gz, or HDF5 as file.h5:/dataset"),
    EM_INT(normal_wishart_options, n, .minimum = 1, .maximum = 1e12, .fallback = "auto",
           .word = "auto", .doc = "without data: numbers to generate from N(0, 1); auto: 5000"),
    EM_BOOL(normal_wishart_options, log_likelihood, .fallback = "false",
            .doc = "store the log likelihood of each number, in the group log_likelihood"),
    EM_BOOL(normal_wishart_options, posterior_predictive, .fallback = "false",
            .doc = "store numbers drawn anew, in the group posterior_predictive"),
    {0}};

enum { DEFAULT_N = 5000 };

enum { MU, ETA, DIM }; /* positions in theta */

typedef struct normal_wishart {
    em_model model;
    em_variable variable[DIM + 2];
    bool log_likelihood, posterior_predictive; /* reported */
    em_table *table;
    const double *x;         /* [rows.count] of this shard */
    double n, mean, squares; /* of all x: their number, and sum_i (x_i - mean)^2 */
} normal_wishart;

static const em_parameters blocks[] = {{"mu", MU, 1}, {"tau", ETA, 1}};

static em_status generate(int64_t n, uint64_t seed, em_table **table)
{
    const em_stream stream = {seed, EM_ALL_CHAINS, 0, EM_RNG_DATA};
    EM_SCOPED double *x = NULL;
    em_status status = em_agree_first(em_allocate_doubles(em_stride(n), &x), 0);

    if (!status) {
        em_normals(&stream, n, x);
        status = em_table_generate(n, 1, x, table);
    }
    return status;
}

static em_status read_column(char *path, em_table **table)
{
    const em_table_options options = {.data = path, .columns = INT64_MIN};
    em_status status = em_table_read(&options, table);

    if (!status && ((*table)->n_column != 1 || (*table)->column))
        status = em_fail(EM_EDATA, "%s:1: found %lld columns, expected 1", path,
                         (long long)(*table)->n_column);
    return status;
}

static void destroy(em_model *model)
{
    normal_wishart *self = (normal_wishart *)model;

    em_table_destroy(&self->table);
    em_release(&self);
}

/* Adds one part of the summary: first the number and the sum of x, then the squares about its mean.
 */
static void add_summary(em_model *model, int64_t chunk, const em_rows *rows, double *sum)
{
    const normal_wishart *self = (const normal_wishart *)model;

    for (int64_t i = rows->first; i < rows->first + rows->count; i++) {
        const double deviation = self->x[i] - self->mean;
        sum[0] += chunk == 0 ? 1 : deviation * deviation;
        sum[1] += chunk == 0 ? self->x[i] : 0;
    }
}

static void take_summary(em_model *model, int64_t chunk, const double *sum)
{
    normal_wishart *self = (normal_wishart *)model;

    if (chunk == 0) {
        self->n = sum[0];
        self->mean = sum[0] > 0 ? sum[1] / sum[0] : 0;
    } else {
        self->squares = sum[0];
    }
}

static void add_variables(normal_wishart *self)
{
    em_model *model = &self->model;
    const em_variable x = {.name = "x", .sharded = true, .n_axes = 1, .shape = {model->rows.total}};

    self->variable[model->n_variable++] = (em_variable){.name = "mu"};
    self->variable[model->n_variable++] = (em_variable){.name = "tau"};
    if (self->log_likelihood) {
        self->variable[model->n_variable] = x;
        self->variable[model->n_variable++].group = EM_LOG_LIKELIHOOD;
    }
    if (self->posterior_predictive) {
        self->variable[model->n_variable] = x;
        self->variable[model->n_variable++].group = EM_POSTERIOR_PREDICTIVE;
    }
    model->variable = self->variable;
}

static em_status set_up(em_model *model, const void *untyped, const em_model_context *context)
{
    const normal_wishart_options *options = untyped;
    const int64_t n = options->n == INT64_MIN ? DEFAULT_N : options->n;
    normal_wishart *self = (normal_wishart *)model;

    if (options->data && options->n != INT64_MIN)
        return em_fail(EM_ECONFIG,
                       "model.n: found %lld together with data %s, expected one of the two",
                       (long long)options->n, options->data);
    em_status status = options->data ? read_column(options->data, &self->table)
                                     : generate(n, context->seed, &self->table);
    if (status)
        return status;
    const em_share rows =
        em_shard_rows(self->table->total, EM_TILE_ROWS, context->shard, context->n_shard);
    status = em_table_hold(self->table, rows.first, rows.count);
    if (status)
        return status;
    self->model = (em_model){.ops = context->ops,
                             .dim = DIM,
                             .n_block = 2,
                             .block = blocks,
                             .rows = rows,
                             .n_chunk = 2,
                             .chunk_size = EM_LANES,
                             .data_hash = self->table->hash};
    self->x = self->table->value;
    self->log_likelihood = options->log_likelihood;
    self->posterior_predictive = options->posterior_predictive;
    add_variables(self);
    return EM_OK;
}

static em_status add_prior(em_model *model, const em_query *query)
{
    (void)model;
    for (int64_t c = 0; c < query->n_chain; c++) {
        const double *theta = query->theta + c * query->stride;
        const double tau = exp(theta[ETA]);
        query->log_density[c] += (theta[ETA] - tau) / 2;
        query->gradient[c * query->stride + ETA] += (1 - tau) / 2;
    }
    return EM_OK;
}

/* Computes sum_i (x_i - mu) and the sum of the squares. For all of x it uses the mean of x, and for
 * a minibatch it goes row by row. */
static void deviations(const normal_wishart *self, const em_rows *rows, double mu, double *sum,
                       double *squares)
{
    if (rows->all) {
        *sum = self->n * (self->mean - mu);
        *squares = self->squares + *sum * (self->mean - mu);
        return;
    }
    *sum = *squares = 0;
    for (int64_t i = 0; i < rows->count; i++) {
        double deviation = self->x[em_row(rows, i)] - mu;
        *sum += deviation;
        *squares += deviation * deviation;
    }
}

static em_status add_likelihood(em_model *model, const em_query *query)
{
    const normal_wishart *self = (const normal_wishart *)model;
    const double n = query->rows.all ? self->n : (double)query->rows.count;

    for (int64_t c = 0; c < query->n_chain; c++) {
        const double *theta = query->theta + c * query->stride;
        double *gradient = query->gradient + c * query->stride;
        double tau = exp(theta[ETA]), sum, squares;
        deviations(self, &query->rows, theta[MU], &sum, &squares);
        query->log_density[c] += (n * theta[ETA] - tau * squares) / 2;
        gradient[MU] += tau * sum;
        gradient[ETA] += (n - tau * squares) / 2;
    }
    return EM_OK;
}

/* The Fisher information diag(n tau, n / 2), and the prior's part tau / 2 at eta. */
static em_status add_metric(em_model *model, bool prior, const em_rows *rows, const double *theta,
                            double *metric, double *derivative)
{
    const double n = rows ? ((const normal_wishart *)model)->n : 0, tau = exp(theta[ETA]);

    metric[MU * DIM + MU] += n * tau;
    metric[ETA * DIM + ETA] += n / 2 + (prior ? tau / 2 : 0);
    if (derivative) {
        derivative[(ETA * DIM + MU) * DIM + MU] += n * tau;
        derivative[(ETA * DIM + ETA) * DIM + ETA] += prior ? tau / 2 : 0;
    }
    return EM_OK;
}

static em_status report(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    const normal_wishart *self = (const normal_wishart *)model;
    const em_share *rows = &model->rows;
    const double mu = theta[MU], tau = exp(theta[ETA]);

    *out++ = mu;
    *out++ = tau;
    if (self->log_likelihood) {
        double *own = em_shard_clear(rows, out);
        for (int64_t i = 0; i < rows->count; i++)
            own[i] = (theta[ETA] - log(2 * M_PI) - tau * (self->x[i] - mu) * (self->x[i] - mu)) / 2;
        out += rows->total;
    }
    if (self->posterior_predictive) {
        double *own = em_shard_clear(rows, out);
        em_draw_normals(draw, (uint64_t)rows->first, rows->count, own);
        for (int64_t i = 0; i < rows->count; i++)
            own[i] = mu + own[i] / sqrt(tau);
    }
    return EM_OK;
}

const em_model_ops em_model_normal_wishart = {
    .name = "normal_wishart",
    .doc = "mean and precision of normal data: flat mean, Wishart(1, 1) precision",
    .source = "Roychowdhury & Parthasarathy (2017), section 4.1",
    .options_size = sizeof(normal_wishart_options),
    .fields = fields,
    .create = em_model_build,
    .state = &(const em_construction){sizeof(normal_wishart), set_up},
    .destroy = destroy,
    .add_prior = add_prior,
    .report = report,
    .add_likelihood = add_likelihood,
    .summary = &(const em_model_summary){.add = add_summary, .take = take_summary},
    .metric = &(const em_model_metric){.add = add_metric},
    .prior = &(const em_model_prior){.none = "has a flat prior of mu, which is improper"}};
