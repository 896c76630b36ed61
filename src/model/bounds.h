/*
 * Transforms between bounded parameters x and unconstrained numbers theta, which samplers move,
 * with their Jacobians:
 *     above L: x = L + e^theta; below U: x = U - e^theta; between: x = L + (U - L) logit^-1(theta);
 *     ordered: x_0 = theta_0, x_k = x_{k-1} + e^theta_k;
 *     simplex: x_k = (1 - x_0 - ... - x_{k-1}) logit^-1(theta_k - log(n - k - 1)), n - 1 of them.
 * Source: Stan Reference Manual, "Constraint transforms".
 */
#pragma once

#include "emass/variable.h"

/* The length of x, and of theta, for n parameters. Local. */
int64_t em_bounds_size(int64_t n, const em_variable *parameter);
int64_t em_bounds_free_size(int64_t n, const em_variable *parameter);

/* Whether any of them has bounds. Local. */
bool em_bounds_any(int64_t n, const em_variable *parameter);

/* The distance of x[i] = `at` from its nearest bound; INFINITY if it has no finite bound. Local. */
double em_bounds_distance(int64_t n, const em_variable *parameter, int64_t i, double at);

/* Transform theta to x, and x to theta. Local. */
void em_bounds_constrain(int64_t n, const em_variable *parameter, const double *theta, double *x);
void em_bounds_free(int64_t n, const em_variable *parameter, const double *x, double *theta);

/* Chain rule: adds to `gradient`, with respect to theta, the gradient `by_x` with respect to x.
 * Local. */
void em_bounds_pull_back(int64_t n, const em_variable *parameter, const double *theta,
                         const double *x, const double *by_x, double *gradient);

/* Returns log |dx / dtheta|, and adds its gradient by theta. Local. */
double em_bounds_add_jacobian(int64_t n, const em_variable *parameter, const double *theta,
                              double *gradient);
