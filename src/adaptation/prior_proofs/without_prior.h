/*
 * Private to adaptation: gradients of the log density without one proved prior. Local apart from
 * the evaluations.
 */
#pragma once

#include "adaptation/prior_proofs/scale_derivative.h"

/* Draws and gradients without the prior of parameter i. */
typedef struct em_without_prior {
    em_samples samples;
    em_gradient_function gradients;
    /* Private: */
    double *row; /* of the samples */
    const em_gradient_function *whole;
    const em_normal_prior *prior;
    int64_t dim, i;
} em_without_prior;

/* x_i less its location by the prior. */
static inline double em_away_from_location(const em_normal_prior *prior, int64_t i, const double *x)
{
    double away = x[i];

    for (int j = 0; j < EM_MOST_LOCATIONS && prior->location[j] >= 0; j++)
        away -= prior->coefficient[j] * x[(int64_t)prior->location[j]];
    return away;
}

/* The degree of the scale of the prior itself, which for a factor is constant. */
static inline double em_degree_of_prior(const em_normal_prior *prior)
{
    return em_is_factor(prior->form) ? 0 : prior->degree;
}

/* Subtracts from gradient [dim] at x [dim] the derivatives of the log of the prior of parameter i
 * by x_i and by the parameters of its location. Returns its derivative by the log of the scale, and
 * in *slope, unless NULL, the derivative of F by x_k. */
double em_subtract_normal(const em_normal_prior *prior, int64_t i, const double *x,
                          double *gradient, double *slope);

/* The arguments must outlive `out`, which may not be moved. Errors: EM_EMEMORY. */
em_status em_without_prior_create(em_owner *owner, int64_t dim, const em_samples *samples,
                                  const em_gradient_function *gradients, int64_t i,
                                  const em_normal_prior *prior, em_without_prior *out);
