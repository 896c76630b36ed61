/*
 * Capability `metric`: a metric G(theta) for Riemannian samplers (sgrld, rhmc and their relatives).
 * A model has `add`, or, for many parameters, `diagonal` instead.
 *
 * Example metric:
 *     // y = 3 ~ Poisson(e^theta), theta ~ normal(0, 1); G = e^theta + 1
 *     static em_status density(const void *options, const double *theta, double *log_p,
 *                              double *gradient)
 *     {
 *         *log_p += 3 * theta[0] - exp(theta[0]) - theta[0] * theta[0] / 2;
 *         gradient[0] += 3 - exp(theta[0]) - theta[0];
 *         return EM_OK;
 *     }
 *     static em_status add(em_model *model, bool prior, const em_rows *rows, const double *theta,
 *                          double *metric, double *derivative)
 *     {
 *         metric[0] += exp(theta[0]) + 1;
 *         if (derivative)
 *             derivative[0] += exp(theta[0]);
 *         return EM_OK;
 *     }
 *     EMASS_PLUGIN({.name = "metric", .dim = 1, .log_density_gradient = density, .sampler = "rhmc",
 *                   .metric = &(const em_model_metric){.add = add}});
 */
#pragma once

#include "emass/model.h"

EM_BEGIN_C

/* What is asked of a diagonal metric G(theta). All arrays but `held` are of the parameters of
 * `block`; NULL: of all of them. Those that are NULL are not wanted, the others replaced. */
typedef struct em_diagonal {
    const em_parameters *block;
    const double *theta;
    const double *held;   /* [dim] where the others stand, with a block */
    double *metric;       /* G_i */
    double *own;          /* dG_i / dtheta_i */
    const double *weight; /* of elements, for */
    double *slope;        /* sum_i weight_i dG_i / dtheta_k */
} em_diagonal;

typedef struct em_model_metric {
    /*
     * A metric of one chain, positive definite: adds the Fisher information of observations (NULL:
     * none; else as add_likelihood, never listed) and, with `prior`, minus the Hessian of the log
     * prior. Adds to the lower triangles of metric [dim][dim] and, where it is not NULL, of
     * derivative [dim][dim][dim], whose matrix k is dG / dtheta_k. Local.
     */
    em_status (*add)(em_model *model, bool prior, const em_rows *rows, const double *theta,
                     double *metric, double *derivative);
    /* A metric that is diagonal, of what all ranks know alike. Where there is none, an element is
     * not above zero, or not finite. Local. */
    void (*diagonal)(em_model *model, const em_diagonal *ask);
} em_model_metric;

EM_END_C
