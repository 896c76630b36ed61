/*
 * An ascent from one point to an optimum of the log density, by limited-memory BFGS, and the
 * Laplace approximation there. The starts of chains come from it. An ascent should stay in the
 * basin of attraction of its start, so each step is bounded, and the bound grows only after
 * successful steps.
 */
#pragma once

#include "base/memory.h"
#include "posterior/posterior.h"

#include <stdbool.h>
#include <stdint.h>

/* Gradients that one ascent may take, and the most parameters for which its points are kept. */
enum { EM_ASCENT_GRADIENTS = 100, EM_ASCENT_MOST_DIM = 100000 };

/* The largest plausible difference between the log density at the mode of a normal distribution and
 * at a draw from it. Local. */
double em_fall_of_draws(int64_t dim);

/* The points of an ascent, including its start. */
typedef struct em_ascent {
    int64_t dim, stride;
    int64_t n_point;
    double *point;       /* [EM_ASCENT_GRADIENTS + 1][stride] */
    double *log_density; /* [EM_ASCENT_GRADIENTS + 1] */
    double *scale;       /* [stride] the diagonal of the inverse curvature at the last point,
                            estimated from the steps so far */
    double *best_scale;  /* [stride] the same at the best point */
    int64_t best;        /* the point with the largest product of density and volume */
    double best_mass;    /* the logarithm of that product. In the neck of a funnel many points have
                            about the same product, and `best` is the first of them */
    double *gradient;    /* [stride] at the last point */
    bool converged;      /* the next step would gain less than 0.01 */
    bool stuck;          /* no step along the gradient from the start raises the density */
    int64_t gradients;   /* the number of gradients computed */
    int64_t most;        /* the limit of that number; EM_ASCENT_GRADIENTS by default */
    double *work;
} em_ascent;

/* Local. Errors: EM_EMEMORY. */
em_status em_ascent_create(em_owner *owner, int64_t dim, em_ascent **out);

/* The log density and its gradient [stride] at theta [stride], by the density of chain `chain`;
 * *log_density is NaN where one of them is not finite. Collective over the ranks of a group.
 * Errors: EM_EMODEL. */
em_status em_evaluate_point(em_posterior *posterior, int64_t chain, int64_t dim,
                            const double *theta, double *gradient, double *log_density);

/*
 * Ascends from theta [stride], by the density of chain `chain`. `scale` [stride] is an estimate of
 * the diagonal of the inverse curvature; NULL: there is none. Collective over the ranks of a group,
 * all of which get the result. Errors: EM_EMODEL.
 */
em_status em_ascend(em_posterior *posterior, int64_t chain, const double *theta,
                    const double *scale, em_ascent *out);

/* The index of the point at which a chain starts: the first point whose log density is at most
 * em_fall_of_draws below that of the best one. Local. */
int64_t em_ascent_start(const em_ascent *ascent);

/* The end point of an ascent. */
typedef struct em_optimum {
    double *theta, *gradient, *scale; /* [stride] each, as those of em_ascent */
    double log_density;
    bool converged;
} em_optimum;

em_optimum em_ascent_end(const em_ascent *ascent);

/*
 * The Laplace approximation around an optimum, by central differences of gradients, 2 dim of them:
 * precision [dim][dim] is minus the Hessian, and *log_mass the logarithm of the integral. If the
 * point is not an optimum, *log_mass is NaN and onward [dim] is a step uphill: a Newton step or, on
 * a saddle, one standard deviation along the direction of the most negative curvature. At an
 * optimum `onward` is 0. Collective over the ranks of a group. Errors: EM_EMEMORY, EM_EMODEL,
 * EM_ENUMERIC.
 */
em_status em_laplace(em_posterior *posterior, int64_t chain, int64_t dim, const em_optimum *at,
                     double *precision, double *log_mass, double *onward);
