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

/* Inputs and outputs of a diagonal metric G(theta). All arrays but `held` have an element for each
 * parameter of `block`; block NULL: of the model. Outputs that are NULL are not needed; the others
 * are overwritten. */
typedef struct em_diagonal {
    const em_parameters *block;
    const double *theta;
    const double *held;   /* [dim] values of all parameters, if there is a block */
    double *metric;       /* G_i */
    double *own;          /* dG_i / dtheta_i */
    const double *weight; /* input weight_i of the output `slope`: */
    double *slope;        /* sum_i weight_i dG_i / dtheta_k */
} em_diagonal;

typedef struct em_model_metric {
    /*
     * Adds the terms of a positive definite metric at the position of one chain: the Fisher
     * information of the observations `rows` (NULL: none; else as in add_likelihood, but never
     * listed) and, if `prior`, minus the Hessian of the log prior. It adds to the lower triangles
     * of metric [dim][dim] and, if not NULL, of derivative [dim][dim][dim], whose matrix k is dG /
     * dtheta_k. Local.
     */
    em_status (*add)(em_model *model, bool prior, const em_rows *rows, const double *theta,
                     double *metric, double *derivative);
    /* Computes a diagonal metric from data that all ranks hold. If the metric is not defined at
     * theta, it writes an element that is not positive or not finite. Local. */
    void (*diagonal)(em_model *model, const em_diagonal *ask);
} em_model_metric;

EM_END_C
