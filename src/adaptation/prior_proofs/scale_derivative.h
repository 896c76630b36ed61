/*
 * Private to adaptation and tempering: normal priors with a common scale, which mixed second
 * derivatives of the log density prove.
 */
#pragma once

#include "emass/status.h"
#include "mass/estimator.h"
#include "posterior/noncentring.h"

#include <stdbool.h>

/* The prior x_i ~ N(sum_j b_j x_j, e^(2 a x_k) / precision). `form`, an em_scale_form, replaces
 * e^(a x_k) where the scale is another function of x_k. If it varies, precision and b_j depend on
 * another parameter, such as the coefficient of an autoregression, and are those at its mean. With
 * a second log scale x_l, as of a horseshoe's coefficient, the variance is e^(2 a x_k + 2 a' x_l) /
 * precision. Precision 0: the prior is not known. All members are double, so that they can be
 * stored as an array. */
typedef struct em_normal_prior {
    double precision, scale, degree, form, varies; /* scale: k; degree: a */
    double second_scale, second_degree;            /* l and a'; a' 0: there is none */
    double location[EM_MOST_LOCATIONS];            /* j; -1 ends the list */
    double coefficient[EM_MOST_LOCATIONS];         /* b_j */
    double failures; /* tests of parameter i as a log scale that have failed */
} em_normal_prior;

enum { EM_NORMAL_PRIOR_NUMBERS = sizeof(em_normal_prior) / sizeof(double) };

/* The most draws that a search uses, evenly thinned. */
enum { EM_MOST_NONCENTRING_DRAWS = 1000 };

/* Models with more parameters have "many": their draws are fewer than parameters, so only groups
 * that are proved are mapped, and those of models with still more are not. */
enum { EM_MOST_SEARCHED = 200, EM_MOST_MAPPED = 2000 };

/* The least standard deviation of the log of a scale: a constant mass suits narrower ones. With n
 * members it matters from about 0.5 / sqrt(n) on. Local. */
static inline double em_least_spread(int64_t dim)
{
    return dim > EM_MOST_SEARCHED ? 0.01 : 0.05;
}

/* Whether n draws suffice for a search for members of log scales in draws (noncentring_search.h).
 */
static inline bool em_suffices_for_noncentring(int64_t dim, int64_t n)
{
    return n >= 120 && n >= 2 * dim && EM_MOST_NONCENTRING_DRAWS >= 2 * dim;
}

/* Whether n draws suffice for proofs. */
static inline bool em_suffices_for_proofs(int64_t dim, int64_t n)
{
    return dim > EM_MOST_SEARCHED ? n >= 120 && dim <= EM_MOST_MAPPED
                                  : em_suffices_for_noncentring(dim, n);
}

/* Computes gradients of the log density at n > 0 positions theta [n][dim]. A row of `gradient`
 * [n][dim] is not finite where there is none. */
typedef struct em_gradient_function {
    em_status (*evaluate)(void *context, int64_t n, const double *theta, double *gradient);
    void *context;
} em_gradient_function;

/* Looks for log scales among the parameters of which it is not known, and adds to prior [dim] those
 * of their members. Does nothing if the draws do not suffice. Zeros are the state at the start.
 * length [dim]: of the vector of the model to which each parameter belongs; those of short ones are
 * tested first; NULL: not known. Local apart from the evaluations. Errors: EM_EMEMORY, those of the
 * evaluations. */
em_status em_prove_priors(int64_t dim, const em_samples *samples,
                          const em_gradient_function *gradient, const int64_t *length,
                          em_normal_prior *prior);

/* Looks for log scales that multiply parameters with the prior N(0, 1), and adds to prior [dim]
 * those of these parameters, with the form EM_SCALE_OF_FACTOR: the data depend on e^(a x_k) x_i.
 * Does nothing if the draws do not suffice. Local apart from the evaluations. Errors: EM_EMEMORY,
 * those of the evaluations. */
em_status em_prove_factors(int64_t dim, const em_samples *samples,
                           const em_gradient_function *gradient, em_normal_prior *prior);

/* Removes the priors whose scale varies little in the draws, and all failures, so that tests at
 * these draws decide again. For what has been proved at other positions. */
void em_forget_narrow_scales(int64_t dim, const em_samples *samples, em_normal_prior *prior);
