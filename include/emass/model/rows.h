/*
 * Capability `rows`: observations that are the rows of a table. The model computes the log
 * likelihood of one row, and can draw a new response for it. emass reads the table named by the
 * option `data`, distributes its rows over shards, sums over them, and reports for each row its log
 * likelihood and a response from the posterior predictive distribution. It also predicts the rows
 * of another table (emass predict).
 *
 * Example rows:
 *     // y ~ normal(a + b x, sigma)     model: {name: rows, library: ./rows.so, data: points.csv}
 *     typedef struct { char *data; } options;
 *     static const em_field fields[] = {EM_PATH(options, data, .doc = "has columns y and x"), {0}};
 *     static const em_variable parameters[] = {
 *         {.name = "a"}, {.name = "b"}, {.name = "sigma", .bounds = EM_ABOVE(0)}};
 *     static em_status prior(const void *given, const double *theta, double *log_p,
 *                            double *gradient) // sigma ~ exponential(1), the others are flat
 *     {
 *         *log_p -= theta[2];
 *         gradient[2] -= 1;
 *         return EM_OK;
 *     }
 *     static void add(const void *given, const double *theta, const double *row, double *log_p,
 *                     double *gradient)
 *     {
 *         const double sigma = theta[2], z = (row[0] - theta[0] - theta[1] * row[1]) / sigma;
 *         *log_p -= z * z / 2 + log(sigma) + log(2 * acos(-1)) / 2;
 *         gradient[0] += z / sigma;
 *         gradient[1] += z / sigma * row[1];
 *         gradient[2] += (z * z - 1) / sigma;
 *     }
 *     static double draw(const void *given, const double *theta, const double *row, double z)
 *     {
 *         return theta[0] + theta[1] * row[1] + theta[2] * z;
 *     }
 *     static const char *const columns[] = {"y", "x"};
 *     EMASS_PLUGIN({.name = "rows", .options_size = sizeof(options), .fields = fields,
 *                   .n_parameter = 3, .parameter = parameters, .log_density_gradient = prior,
 *                   .rows = &(const em_model_rows){2, columns, add, draw, .normal = true}});
 */
#pragma once

#include "emass/model.h"

EM_BEGIN_C

enum { EM_MOST_COLUMNS = 64 };

/* For a model without `create` that has an option `data` of type path. The density function of its
 * em_model_ops is the prior; without one the prior is flat. */
typedef struct em_model_rows {
    int64_t n_column; /* at most EM_MOST_COLUMNS */
    const char *const
        *column; /* [n_column] names of the columns of a row; the first is the response */
    /* Adds the log likelihood of one row, and its gradient. Local. */
    void (*add)(const void *options, const double *theta, const double *row, double *log_density,
                double *gradient);
    /* OPTIONAL: a new response, computed from one uniform number in (0, 1) or, if `normal`, one
     * standard normal. In rows to predict, the response is NaN if their table has none. Local. */
    double (*draw)(const void *options, const double *theta, const double *row, double random);
    bool normal;
} em_model_rows;

EM_END_C
