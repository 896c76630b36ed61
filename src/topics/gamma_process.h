/*
 * A truncated gamma process as the prior of the weights r of topics (EQUATIONS 23; Roychowdhury &
 * Kulis 2015). Its unconstrained parameters are the logarithms of
 *
 *     T_k ~ Gamma(d_k, rate alpha),  E_k ~ Exp(rate c),  r_k = E_k exp(-T_k) + EM_LEAST_WEIGHT
 *
 * where atom k belongs to round d_k, and each round has Poisson(gamma) atoms. alpha, gamma and c
 * have gamma priors. All Local.
 */
#pragma once

#include "emass/model.h"
#include "emass/model/metric.h"

/* The smallest weight, which is positive so that every topic can be drawn. */
#define EM_LEAST_WEIGHT 1e-7

typedef struct em_gamma_process {
    int64_t n, rounds;  /* atoms k has round 1 + rounds k / n */
    double shape, rate; /* of the priors of alpha, gamma and c */
} em_gamma_process;

/* The order of its parameters: log E [n], log T [n], log alpha, log gamma, log c. */
enum { EM_GAMMA_HYPER = 3 };

static inline int64_t em_gamma_process_size(const em_gamma_process *process)
{
    return 2 * process->n + EM_GAMMA_HYPER;
}

/* Writes a random position near the mean of the prior, from random numbers first, first + 1, ... of
 * the draw. */
void em_gamma_process_start(const em_gamma_process *process, const em_draw *draw, uint64_t first,
                            double *theta);

/* Adds the log density of the unconstrained parameters, Jacobian included, and its gradient. */
void em_gamma_process_add_prior(const em_gamma_process *process, const double *theta,
                                double *log_density, double *gradient);

/* Computes r [n]. Returns false if one is not finite. */
bool em_gamma_process_weights(const em_gamma_process *process, const double *theta, double *r);

/* Chain rule: adds to the gradient that of a function of r whose derivatives by r are slope [n]. */
void em_gamma_process_add_slope(const em_gamma_process *process, const double *theta,
                                const double *slope, double *gradient);

/*
 * A diagonal metric of those logarithms: the information of prior and documents on each. The
 * information of the prior on the logarithm of a gamma variable is its shape. In the Chinese
 * restaurant process a document has about r_k log(1 + length / R) tables of topic k, R = sum r, and
 * their number is nearly Poisson. So all documents have the information S / r_k on r_k, with S =
 * documents log(1 + length / R). With w_k = E_k exp(-T_k), the derivative of r_k by log E_k,
 *
 *     log E_k: 1 + w_k S,  log T_k: d_k + T_k^2 w_k S,
 *     log alpha: shape + sum_k d_k,  log gamma, log c: shape + n
 *
 * It is positive everywhere. It need not be exact, because the metric does not change the
 * stationary distribution.
 */
typedef struct em_gamma_documents {
    double number, length; /* of all of them; their mean */
} em_gamma_documents;

/* Computes this metric. No array of `ask` that it uses is NULL: theta, metric, own, weight and
 * slope have em_gamma_process_size elements each, in the order of the parameters. */
void em_gamma_process_diagonal(const em_gamma_process *process, em_gamma_documents documents,
                               const em_diagonal *ask);
