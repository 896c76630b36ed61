/* A Gaussian whose minibatch gradients have a known covariance. */
#ifndef TESTS_SUPPORT_NOISY_MODEL_H
#define TESTS_SUPPORT_NOISY_MODEL_H

#include "support/law.h"
#include "support/matrix.h"

enum { N_ROW = 24, ROWS_PER_BATCH = 6 };

/*
 * The likelihood is sum_i b_i . (theta - mean) with sum_i b_i = 0: nothing when all are summed, and
 * noise of covariance V = N^2/n Cov(b) in a minibatch, wherever theta is.
 */
typedef struct noisy_model {
    law_model law;
    double b[N_ROW][LAW_MOST_DIM];
} noisy_model;

em_status noisy_add_likelihood(em_model *base, const em_query *query);

/* Pairs of opposite rows, so that they sum to zero; of the given size, and correlated. */
noisy_model noisy_model_of(const gaussian_law *law, double size);

/* V of a gradient from ROWS_PER_BATCH rows. */
matrix noisy_covariance(const noisy_model *model, bool replacement);

#endif
