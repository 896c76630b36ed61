/*
 * Private to regressions: their priors.
 *
 * With model.prior_scale every coefficient, the intercept too, is normal(0, variance prior_scale),
 * and theta are the coefficients of the unscaled columns. Otherwise the priors are on the scale of
 * the data, as in rstanarm (Gabry and Goodrich, prior distributions for rstanarm models): with u =
 * sd(y) for the identity link and u = 1 for other links,
 *     coefficient k ~ normal(0, 2.5 u / sd(x_k)),
 *     the intercept where predictors are at their means ~ normal(mean(y) or 0, 2.5 u),
 *     sigma ~ exponential(1 / u), or what model.prior says; and theta are in the units of the
 * priors, (coefficient - location) / scale, of columns less their means.
 */
#pragma once

#include "model/regression/regression.h"

/* Checks `options` and finds the priors, with the moments of the columns that they need. Does
 * nothing for a model that only predicts. Collective. Errors: EM_ECONFIG, EM_EDATA, EM_EMEMORY,
 * agreed. */
em_status em_regression_find_priors(em_regression *self, const em_table *table,
                                    const em_regression_options *options,
                                    const em_regression_plan *plan);

/* The scaling of the `n` columns after which theta are their coefficients; arrays are freed by
 * em_release. NULLs: the columns are not scaled. Local. Errors: EM_EMEMORY. */
em_status em_regression_scaling(const em_regression *self, int64_t n, em_scaling *to);

/* Adds the effect of the priors' locations to the offset of the design, or, with an identity link,
 * subtracts it from the response. Collective. Errors, agreed: EM_EMEMORY. */
em_status em_regression_centre(em_regression *self, bool identity);

/* The coefficients as they are reported, beta [n_column], at a position. Local. */
void em_regression_beta(const em_regression *self, const double *theta, double *beta);

/* The priors in words and numbers, once the design has its columns, and in arrays. Local. Errors:
 * EM_EMEMORY. */
em_status em_regression_say_priors(em_regression *self);
enum { EM_PRIOR_ARRAYS = 6 };
int em_regression_prior_data(em_regression *self, em_datum datum[EM_PRIOR_ARRAYS]);
void em_regression_release_priors(em_regression *self);
