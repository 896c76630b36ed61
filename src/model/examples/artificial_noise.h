/*
 * Gradient noise of known size for models that have no data. Observation i of N adds b_i . theta to
 * the log density. The b_i sum to 0, so all together add nothing. n of them (with replacement) give
 * the gradient the error N/n sum b, with mean 0 and covariance variance / n times the identity.
 */
#pragma once

#include "emass/model.h"

typedef struct em_artificial_noise {
    double *b;         /* [N][dim]; NULL: none */
    const double *own; /* the observations of this shard, within b */
} em_artificial_noise;

/* The row of a model's options, a struct with a double `gradient_noise`. */
#define EM_GRADIENT_NOISE_FIELD(options)                                                           \
    EM_REAL(options, gradient_noise, .maximum = 1e12, .fallback = "0",                             \
            .doc = "variance of the gradient from a minibatch of one observation, out of 10000 "   \
                   "artificial ones; 0: no minibatches")

/* If variance > 0, creates the observations and sets model->rows; model->dim must be set. Local.
 * Errors: EM_EMEMORY. */
em_status em_artificial_noise_create(double variance, const em_model_context *context,
                                     em_model *model, em_artificial_noise *out);
void em_artificial_noise_destroy(em_artificial_noise *noise);

/* Adds the log likelihood of the listed observations and its gradient. For a query of all rows it
 * adds nothing, on any shard, because their sum is zero. Shapes as in em_model_ops. Local. */
void em_artificial_noise_add(const em_artificial_noise *noise, int64_t dim, const em_query *query);
