/*
 * A Gaussian of known mean and precision: U = (theta - mean)^T P (theta - mean) / 2. Generated
 * precisions have eigenvalues from 1 to `condition`, evenly spaced in the logarithm, and axes along
 * the coordinates or, with `rotation`, at random (Haar measure). On request minibatches bring
 * gradient noise of known size.
 */
#include "base/memory.h"
#include "data/shard/redistribute_rows.h"
#include "emass/model/prior.h"
#include "math/linalg.h"
#include "math/rng.h"
#include "math/simd/panel.h"
#include "model/construct/construct.h"
#include "model/examples/artificial_noise.h"
#include "par/message.h"
#include "par/node_shared_array.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

typedef struct gaussian_options {
    int64_t dim;
    double condition;
    bool rotation;
    char *mean, *precision, *covariance;
    int64_t blocks;
    double gradient_noise;
} gaussian_options;

static const em_field fields[] = {
    EM_INT(gaussian_options, dim, .minimum = 1, .maximum = 1e7, .fallback = "auto", .word = "auto",
           .doc = "dimension; auto: that of the precision or covariance if it is read from a file, "
                  "else 10"),
    EM_REAL(gaussian_options, condition, .minimum = 1, .maximum = 1e300, .fallback = "1",
            .doc = "largest eigenvalue of the generated precision; the smallest is 1"),
    EM_BOOL(gaussian_options, rotation, .fallback = "false",
            .doc = "axes of the generated precision at random, from the seed"),
    EM_PATH(gaussian_options, mean, .fallback = "",
            .doc = "file of one column: CSV, spaces, HDF5 as file.h5:/dataset; absent: 0"),
    EM_PATH(gaussian_options, precision, .fallback = "",
            .doc = "file of a symmetric positive definite matrix"),
    EM_PATH(gaussian_options, covariance, .fallback = "",
            .doc = "file of the covariance matrix; give precision or covariance, not both"),
    EM_INT(gaussian_options, blocks, .minimum = 1, .maximum = 100, .fallback = "1",
           .doc = "number of blocks, block_1, block_2, ..., into which the parameters are divided "
                  "for a list of samplers"),
    EM_GRADIENT_NOISE_FIELD(gaussian_options),
    {0}};

enum {
    DEFAULT_DIM = 10,
    PANEL = 8,
    SMALL_DIM = 100 /* up to which the precision is stored beside the draws */
};

typedef struct gaussian {
    em_model model;
    em_variable variable;
    em_datum datum[2];
    int64_t stride;
    double *mean;                /* [dim] */
    bool diagonal;               /* generated without rotation: only the diagonal is kept */
    double *precision;           /* [dim][stride], or [stride]; one for the ranks of a node */
    double *deviation, *product; /* work space, [PANEL][stride] */
    em_parameters *block;        /* [model.n_block] */
    char *names;                 /* of them, NAME bytes each */
    double *stored;              /* the precision without padding, [dim][dim], or NULL */
    em_artificial_noise noise;
} gaussian;

/* Reads the whole matrix on ranks where `wanted`, and nothing on others. Collective. */
static em_status read_matrix(char *path, bool wanted, em_table **table)
{
    const em_table_options options = {.data = path, .columns = INT64_MIN};
    em_status status = em_table_read(&options, table);

    status = status ? status : em_table_hold(*table, 0, wanted ? (*table)->total : 0);
    if (status)
        em_table_destroy(table);
    return status;
}

static em_status check_shape(const em_table *table, int64_t n_row, int64_t n_column)
{
    if (table->total == n_row && table->n_column == n_column && !table->column)
        return EM_OK;
    return em_fail(EM_EDATA, "%s:1: found %lld x %lld numbers, expected %lld x %lld", table->path,
                   (long long)table->total, (long long)table->n_column, (long long)n_row,
                   (long long)n_column);
}

/* The first column in which row i of a square matrix differs from the element across the diagonal
 * by more than a text with seven digits would round off; -1: none. */
static int64_t find_uneven(const double *a, int64_t n, int64_t i)
{
    for (int64_t j = 0; j < i; j++)
        if (!(fabs(a[i * n + j] - a[j * n + i]) <= 1e-6 * sqrt(fabs(a[i * n + i] * a[j * n + j]))))
            return j;
    return -1;
}

/* Checks that the matrix is symmetric, on the ranks that have all rows; the others have none.
 * Collective. Errors, agreed: EM_EDATA. */
static em_status check_symmetric(const em_table *table)
{
    const int64_t n = table->n_row;
    const double *a = table->value;
    int64_t i = 0, j = -1;
    em_status status = EM_OK;

    for (; i < n && j < 0; i++)
        j = find_uneven(a, n, i);
    double first = j < 0 ? INFINITY : (double)(i - 1);
    em_world_smallest(1, &first);
    if (isinf(first))
        return EM_OK;
    const long long line = em_table_line(table, (int64_t)first);
    i = (int64_t)first;
    if (j >= 0)
        status = em_fail(EM_EDATA,
                         "%s:%lld: found %g in column %lld and %g across the diagonal, expected a "
                         "symmetric matrix",
                         table->path, line, a[i * n + j], (long long)j + 1, a[j * n + i]);
    return em_agree_first(status, 0);
}

/* Copies a matrix, the mean of its two triangles, and checks that it is positive definite. */
static em_status copy_spd(const em_table *table, int64_t ld, double *to)
{
    const int64_t n = table->n_row;
    const double *from = table->value;
    EM_SCOPED double *factor = NULL;
    em_status status = em_allocate(n * ld, sizeof *factor, &factor);

    if (status)
        return status;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            to[i * ld + j] = factor[i * ld + j] = (from[i * n + j] + from[j * n + i]) / 2;
    status = em_cholesky(n, factor, ld);
    if (status == EM_NONFINITE)
        status = em_fail(EM_EDATA,
                         "%s:1: found a matrix that is not positive definite, expected one that is",
                         table->path);
    return status;
}

/* Sets the precision from the matrix, on the ranks that have the matrix and write the shared copy.
 * Collective. Errors, agreed. */
static em_status load_precision(gaussian *self, const em_table *table, bool is_covariance)
{
    em_status status = em_agree_first(check_shape(table, self->model.dim, self->model.dim), 0);

    status = status ? status : check_symmetric(table);
    if (status)
        return status;
    if (table->n_row > 0)
        status = copy_spd(table, self->stride, self->precision);
    if (!status && is_covariance && table->n_row > 0)
        status = em_invert_spd(self->model.dim, self->precision, self->stride);
    return em_agree_first(status, 0);
}

/* Reflects P on the trailing coordinates first..n: P <- H P H, where H = I - 2 v v^T / v^T v. If v
 * is normal, the product of such reflections is uniform over rotations (Stewart 1980). */
static void reflect(int64_t n, int64_t first, const double *v, double *P, int64_t ld, double *u)
{
    double norm = 0, along = 0;

    for (int64_t i = first; i < n; i++)
        norm += v[i] * v[i];
    for (int64_t i = 0; i < n; i++) {
        u[i] = 0;
        for (int64_t j = first; j < n; j++)
            u[i] += 2 * P[i * ld + j] * v[j] / norm;
    }
    for (int64_t i = first; i < n; i++)
        along += u[i] * v[i] / norm;
    for (int64_t i = first; i < n; i++)
        u[i] -= along * v[i];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            P[i * ld + j] -= (i < first ? 0 : v[i]) * u[j] + u[i] * (j < first ? 0 : v[j]);
}

static void generate_precision(gaussian *self, const gaussian_options *options, uint64_t seed)
{
    const int64_t n = self->model.dim, ld = self->stride;
    em_stream stream = {seed, EM_ALL_CHAINS, 0, EM_RNG_DATA};

    for (int64_t i = 0; i < n; i++)
        self->precision[self->diagonal ? i : i * ld + i] =
            n > 1 ? pow(options->condition, (double)i / (double)(n - 1)) : 1;
    for (int64_t first = 0; options->rotation && first < n - 1; first++) {
        stream.iteration = (uint64_t)first;
        em_normals(&stream, n, self->deviation);
        reflect(n, first, self->deviation, self->precision, ld, self->product);
    }
}

static em_status load_mean(gaussian *self, char *path)
{
    EM_SCOPED_BY(em_table_destroy) em_table *table = NULL;
    em_status status = path ? read_matrix(path, true, &table) : EM_OK;

    if (!status && path)
        status = check_shape(table, self->model.dim, 1);
    if (!status && path)
        memcpy(self->mean, table->value, (size_t)self->model.dim * sizeof *self->mean);
    return status;
}

static em_status allocate(gaussian *self)
{
    const int64_t n = self->model.dim, stride = self->stride;
    const em_status status =
        em_allocate_all(EM_ARRAY(self->mean, n), EM_ARRAY(self->deviation, PANEL * stride),
                        EM_ARRAY(self->product, PANEL * stride));

    return status || n > SMALL_DIM ? status : em_allocate_all(EM_ARRAY(self->stored, n * n));
}

/* Declares the exact moments as data, which are stored with the draws for comparison. */
static void describe(gaussian *self)
{
    const int64_t n = self->model.dim;

    self->variable = (em_variable){.name = "theta", .n_axes = 1, .shape = {n}};
    self->datum[0] =
        (em_datum){"constant_data", {.name = "mean", .n_axes = 1, .shape = {n}}, self->mean};
    self->datum[1] = (em_datum){
        "constant_data", {.name = "precision", .n_axes = 2, .shape = {n, n}}, self->stored};
    for (int64_t i = 0; self->stored && i < n; i++)
        for (int64_t j = 0; j < n; j++)
            self->stored[i * n + j] = !self->diagonal ? self->precision[i * self->stride + j]
                                      : i == j        ? self->precision[i]
                                                      : 0;
    self->model.n_variable = 1;
    self->model.variable = &self->variable;
    self->model.n_datum = self->stored ? 2 : 0;
    self->model.datum = self->datum;
    for (int64_t i = 0; i < (self->diagonal ? 1 : n); i++)
        self->model.data_hash = XXH64(self->precision + i * self->stride,
                                      (size_t)n * sizeof(double), self->model.data_hash);
    self->model.data_hash =
        XXH64(self->mean, (size_t)n * sizeof *self->mean, self->model.data_hash);
}

static void destroy(em_model *model)
{
    gaussian *self = (gaussian *)model;

    em_node_array_release(&self->precision);
    em_release_all(&self->mean, &self->deviation, &self->product, &self->stored, &self->block,
                   &self->names);
    em_artificial_noise_destroy(&self->noise);
    em_release(&self);
}

/* Names n blocks of nearly equal length. Longer blocks come first. */
static em_status name_blocks(gaussian *self, int64_t n)
{
    enum { NAME = 32 };
    const int64_t dim = self->model.dim;

    if (n > dim)
        return em_fail(EM_ECONFIG, "model: found %lld blocks, expected at most %lld, the dimension",
                       (long long)n, (long long)dim);
    em_status status = em_allocate_all(EM_ARRAY(self->block, n), EM_ARRAY(self->names, n * NAME));
    for (int64_t b = 0, first = 0; !status && b < n; first += self->block[b++].count) {
        snprintf(self->names + b * NAME, NAME, "block_%lld", (long long)b + 1);
        self->block[b] =
            (em_parameters){self->names + b * NAME, first, dim / n + (b < dim % n ? 1 : 0), false};
    }
    self->model.n_block = n;
    self->model.block = self->block;
    return status;
}

static int64_t choose_dim(const gaussian_options *options, const em_table *table)
{
    if (options->dim != INT64_MIN)
        return options->dim;
    return table ? table->total : DEFAULT_DIM;
}

/* Sets the precision from `table` or, if that is NULL, generates it. One rank of each node does so.
 * Collective. Errors, agreed. */
static em_status make_precision(gaussian *self, const gaussian_options *options,
                                const em_table *table, em_node_array *node_array, uint64_t seed)
{
    const int64_t n = self->diagonal ? 1 : self->model.dim;
    em_status status = em_agree_first(
        em_node_array_allocate(node_array, n * self->stride, sizeof(double), &self->precision), 0);

    if (!status && table)
        status = load_precision(self, table, options->covariance != NULL);
    else if (!status && em_node_array_writes(node_array))
        generate_precision(self, options, seed);
    if (!status)
        em_node_array_publish(node_array, self->precision);
    return status;
}

/* Fills in the model. `table` is the file of the precision or covariance; NULL: it is generated. */
static em_status fill(gaussian *self, const gaussian_options *options, const em_table *table,
                      em_node_array *node_array, const em_model_context *context)
{
    self->model.dim = choose_dim(options, table);
    self->stride = em_stride(self->model.dim);
    self->diagonal = !table && !options->rotation;
    em_status status = em_agree_first(allocate(self), 0);
    status = status ? status : make_precision(self, options, table, node_array, context->seed);
    status = status ? status : load_mean(self, options->mean);
    if (!status)
        status = em_artificial_noise_create(options->gradient_noise, context, &self->model,
                                            &self->noise);
    status = status ? status : name_blocks(self, options->blocks);
    if (!status)
        describe(self);
    return status;
}

static em_status set_up(em_model *model, const void *untyped, const em_model_context *context)
{
    const gaussian_options *options = untyped;
    char *path = options->precision ? options->precision : options->covariance;
    EM_SCOPED_BY(em_node_array_destroy) em_node_array *node_array = NULL;
    EM_SCOPED_BY(em_table_destroy) em_table *table = NULL;

    if (options->precision && options->covariance)
        return em_fail(EM_ECONFIG, "model: found both precision and covariance, expected one");
    if (path && (options->rotation || options->condition != 1))
        return em_fail(EM_ECONFIG,
                       "model: found %s together with a file of the matrix, expected none: the "
                       "option is for a generated matrix",
                       options->rotation ? "rotation" : "condition");
    em_status status = em_node_array_create(0, &node_array);
    if (!status && path)
        status = read_matrix(path, em_node_array_writes(node_array), &table);
    return status ? status : fill((gaussian *)model, options, table, node_array, context);
}

/* With d = theta - mean and Q = d P, row by row: log p = -d . Q / 2, gradient -Q. */
static void add_panel(const gaussian *self, const em_query *query)
{
    const int64_t n = self->model.dim, ld = self->stride, n_chain = query->n_chain;

    for (int64_t c = 0; c < n_chain; c++)
        for (int64_t i = 0; i < n; i++)
            self->deviation[c * ld + i] = query->theta[c * query->stride + i] - self->mean[i];
    if (!self->diagonal)
        em_panel_product(n_chain, n, n, self->deviation, ld, self->precision, ld, self->product,
                         ld);
    for (int64_t c = 0; self->diagonal && c < n_chain; c++)
        for (int64_t i = 0; i < n; i++)
            self->product[c * ld + i] = self->deviation[c * ld + i] * self->precision[i];
    for (int64_t c = 0; c < n_chain; c++)
        for (int64_t i = 0; i < n; i++) {
            query->log_density[c] -= self->deviation[c * ld + i] * self->product[c * ld + i] / 2;
            query->gradient[c * query->stride + i] -= self->product[c * ld + i];
        }
}

static em_status add_prior(em_model *model, const em_query *query)
{
    for (int64_t c = 0; c < query->n_chain; c += PANEL) {
        const em_query panel = em_query_panel(query, c, PANEL);
        add_panel((const gaussian *)model, &panel);
    }
    return EM_OK;
}

static em_status add_likelihood(em_model *model, const em_query *query)
{
    em_artificial_noise_add(&((gaussian *)model)->noise, model->dim, query);
    return EM_OK;
}

const em_model_ops em_model_gaussian = {
    .name = "gaussian",
    .doc = "Gaussian of known mean and precision, from files or generated",
    .source = "exact posterior, for tests and benchmarks",
    .options_size = sizeof(gaussian_options),
    .fields = fields,
    .create = em_model_build,
    .state = &(const em_construction){sizeof(gaussian), set_up},
    .destroy = destroy,
    .add_prior = add_prior,
    .add_likelihood = add_likelihood,
    .prior = &(const em_model_prior){
        .none = "is a density that is not made of a prior and a likelihood"}};
