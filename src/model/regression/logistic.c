/*
 * Bayesian logistic regression (EQUATIONS 20): y_i ~ Bernoulli(sigma(x_i . beta)), beta ~ N(0,
 * alpha I), so that
 *     log p = sum_i [y_i a_i - log(1 + e^{a_i})] - |beta|^2 / (2 alpha),  a = X beta,
 *     grad  = X^T (y - sigma(a)) - beta / alpha.
 */
#include "base/memory.h"
#include "emass/model/metric.h"
#include "math/rng.h"
#include "math/simd/vector.h"
#include "model/construct/construct.h"
#include "model/regression/regression.h"
#include "par/message.h"

#include <math.h>
#include <string.h>

enum label_rule { LABELS_AUTO, LABELS_BERNOULLI, LABELS_LINEAR };
static const char *const label_rules[] = {"auto", "bernoulli", "linear", NULL};

enum { DEFAULT_N = 2000 };

typedef struct logistic_options {
    em_regression_options regression;
    char *positive; /* NULL: auto */
    int64_t n;
    int labels;
} logistic_options;

static const em_field fields[] = {
    EM_TABLE_FIELDS(""),
    EM_TEXT(logistic_options, positive, .fallback = "",
            .doc = "label that means 1; other labels mean 0; absent: labels are 0 and 1, -1 and 1, "
                   "no and yes, or false and true"),
    EM_TABLE_WEIGHTS_FIELDS,
    EM_REGRESSION_FIELDS,
    EM_INT(logistic_options, n, .minimum = 1, .maximum = 1e12, .fallback = "auto", .word = "auto",
           .doc = "without data: number of points to generate, from normals around (1, -1) and "
                  "(-1, 1); auto: 2000"),
    EM_CHOICE(logistic_options, labels, .fallback = "auto", .choices = label_rules,
              .doc = "labels of generated points: drawn with logit x1 - x2 (bernoulli, or auto), "
                     "or its sign (linear: the classes separate)"),
    {0}};

/* Draws rows (x1, x2, y) in the work space, from two normals and a uniform each for component and
 * label. */
static void draw_points(int64_t n, int labels, uint64_t seed, double *uniform, double *normal,
                        double *row)
{
    em_stream stream = {seed, EM_ALL_CHAINS, 0, EM_RNG_DATA};

    em_normals(&stream, 2 * n, normal);
    stream.iteration = 1;
    em_uniforms(&stream, 0, 2 * n, uniform);
    for (int64_t i = 0; i < n; i++) {
        double side = uniform[2 * i] < 0.5 ? 1 : -1;
        double x1 = side + normal[2 * i], x2 = -side + normal[2 * i + 1];
        double p = labels == LABELS_LINEAR ? x1 > x2 : 1 / (1 + exp(x2 - x1));
        row[3 * i] = x1;
        row[3 * i + 1] = x2;
        row[3 * i + 2] = uniform[2 * i + 1] < p;
    }
}

static em_status generate(const logistic_options *options, uint64_t seed, em_table **table)
{
    const int64_t n = options->n == INT64_MIN ? DEFAULT_N : options->n;
    EM_SCOPED double *uniform = NULL, *normal = NULL, *row = NULL;
    em_status status = em_allocate_doubles(2 * n, &uniform);

    status = status ? status : em_allocate_doubles(em_stride(2 * n), &normal);
    status = status ? status : em_allocate_doubles(3 * n, &row);
    status = em_agree_first(status, 0);
    if (!status) {
        draw_points(n, options->labels, seed, uniform, normal, row);
        status = em_table_generate(n, 3, row, table);
    }
    return status;
}

/* Both labels in one formula: with s = 1 for y = 0 and -1 for y = 1, log p = -log(1 + e^{s a}),
 * whose derivative by a is -s sigma(s a). */
static void bernoulli(const em_glm_tile *t)
{
    const double *y = t->response;

    for (int64_t c = 0; c < t->n_chain; c++)
        for (int64_t i = 0; i < EM_TILE_ROWS; i++)
            t->eta[c * EM_TILE_ROWS + i] *= 1 - 2 * y[i];
    em_logistic(t->n_chain * EM_TILE_ROWS, t->eta, t->density, t->eta);
    for (int64_t c = 0; c < t->n_chain; c++)
        for (int64_t i = 0; i < EM_TILE_ROWS; i++) {
            t->density[c * EM_TILE_ROWS + i] *= -1;
            t->eta[c * EM_TILE_ROWS + i] *= 2 * y[i] - 1;
        }
}

static double constant(double y, const double *shape)
{
    (void)y, (void)shape;
    return 0;
}

static double mean(double eta)
{
    return 1 / (1 + exp(-eta));
}

static em_status draw(em_variate *v, double eta, const double *shape, double *y)
{
    (void)shape;
    *y = em_variate_uniform(v) < mean(eta);
    return EM_OK;
}

/* sigma (1 - sigma), whose derivative by a is sigma (1 - sigma) (1 - 2 sigma) (Girolami &
 * Calderhead 2011, section 7). */
static em_information information(double eta, const double *shape)
{
    const double sigma = 1 / (1 + exp(-eta)), weight = sigma * (1 - sigma);

    (void)shape;
    return (em_information){.eta = weight, .by_eta = weight * (1 - 2 * sigma)};
}

static const em_family family = {.link = bernoulli,
                                 .storage = EM_STORE_INT,
                                 .constant = constant,
                                 .mean = mean,
                                 .draw = draw,
                                 .information = information};

/* The label that counts as 1; NULL: it is found from the data. "auto" occurs in files of earlier
 * versions. */
static const char *positive_of(const logistic_options *options)
{
    const char *positive = options->positive;

    return positive && strcmp(positive, "auto") == 0 ? NULL : positive;
}

/* Checks that options of generated data are not given with a file. */
static em_status check_options(const logistic_options *options)
{
    const char *data = options->regression.table.data;

    if (data && options->n != INT64_MIN)
        return em_fail(EM_ECONFIG,
                       "model.n: found %lld together with data %s, expected one of the two",
                       (long long)options->n, data);
    if (data && options->labels != LABELS_AUTO)
        return em_fail(EM_ECONFIG,
                       "model.labels: found %s together with data %s, expected one of the two",
                       label_rules[options->labels], data);
    return EM_OK;
}

static em_status set_up(em_model *model, const void *untyped, const em_model_context *context)
{
    const logistic_options *options = untyped;
    em_regression *self = (em_regression *)model;
    em_table_options data = options->regression.table;
    const em_regression_plan plan = {.family = &family, .unit = 1};
    EM_SCOPED_BY(em_table_destroy) em_table *table = NULL;
    em_status status = check_options(options);

    if (status)
        return status;
    data.labelled = true;
    if (data.data) {
        status = em_features_read(&data, context->fitted, &table, &self->features);
    } else {
        status = generate(options, context->seed, &table);
        status = status ? status : em_table_take_response(table, &data);
    }
    if (!status && !context->fitted)
        status = em_table_label_response(table, positive_of(options));
    return status ? status
                  : em_regression_create(self, table, &options->regression, context, &plan);
}

const em_model_ops em_model_logistic = {
    .name = "logistic",
    .doc = "Bayesian logistic regression, priors on the scale of the data",
    .source = "Girolami & Calderhead (2011), section 7; Roychowdhury & Parthasarathy (2017), "
              "section 4.2",
    .options_size = sizeof(logistic_options),
    .fields = fields,
    .create = em_model_build,
    .state = &(const em_construction){sizeof(em_regression), set_up},
    EM_PLAIN_REGRESSION_OPS};
