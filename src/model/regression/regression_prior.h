/*
 * Private to regressions: their priors.
 *
 * With model.prior_scale every coefficient and the intercept are normal(0, variance prior_scale),
 * and theta are the coefficients of the unscaled columns. Otherwise model.prior gives the priors.
 * Their defaults are on the scale of the data, as in rstanarm (Gabry and Goodrich, prior
 * distributions for rstanarm models): with u = sd(y) for the identity link and u = 1 for other
 * links,
 *     coefficient k ~ normal(0, 2.5 u / sd(x_k)),
 *     the intercept at the means of the predictors ~ normal(mean(y) or 0, 2.5 u),
 *     sigma ~ exponential(1 / u).
 * theta are then (coefficient - location) / scale, for centred columns.
 */
#pragma once

#include "model/regression/regression.h"

/* Checks `options` and computes the priors, with the moments of the columns that they need. Does
 * nothing for a model that only predicts. Collective. Errors: EM_ECONFIG, EM_EDATA, EM_EMEMORY,
 * agreed. */
em_status em_regression_find_priors(em_regression *self, const em_table *table,
                                    const em_regression_options *options,
                                    const em_regression_plan *plan);

/* The scaling of the `n` columns that makes theta their coefficients; NULL: the columns are not
 * scaled. Arrays are freed by em_release. Local. Errors: EM_EMEMORY. */
em_status em_regression_scaling(const em_regression *self, int64_t n, em_scaling *to);

/* Adds the effect of the priors' locations to the offset of the design, or, with an identity link,
 * subtracts it from the response. Collective. Errors, agreed: EM_EMEMORY. */
em_status em_regression_centre(em_regression *self, bool identity);

/* The reported coefficients, beta [n_column], at a position. Local. */
void em_regression_beta(const em_regression *self, const double *theta, double *beta);

/* Describes the priors in text and in arrays, after the design has its columns. Local. Errors:
 * EM_EMEMORY. */
em_status em_regression_say_priors(em_regression *self);
enum { EM_PRIOR_ARRAYS = 6 };
int em_regression_prior_data(em_regression *self, em_datum datum[EM_PRIOR_ARRAYS]);
