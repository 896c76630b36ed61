/*
 * A truncated gamma process as the prior of the weights r of topics (EQUATIONS 23; Roychowdhury &
 * Kulis 2015). Atom k, of round d_k of the stick-breaking construction, is the weight
 *
 *     r_k = E_k exp(-T_k) + EM_LEAST_WEIGHT,  T_k ~ Gamma(d_k, rate alpha),  E_k ~ Exp(rate c).
 *
 * Each round has Poisson(gamma) atoms. alpha, gamma and c have gamma priors. The unconstrained
 * parameters theta are the logarithms of E, T, alpha, gamma and c. All Local.
 */
#pragma once

#include "emass/model.h"
#include "emass/model/metric.h"

/* The smallest weight, which is positive so that every topic can be drawn. */
#define EM_LEAST_WEIGHT 1e-7

typedef struct em_gamma_process {
    int64_t n, rounds;  /* atoms and rounds; d_k = 1 + rounds k / n, rounded down */
    double shape, rate; /* of the gamma priors of alpha, gamma and c */
} em_gamma_process;

/* The order of theta: log E [n], log T [n], log alpha, log gamma, log c. */
enum { EM_GAMMA_HYPER = 3 };

static inline int64_t em_gamma_process_size(const em_gamma_process *process)
{
    return 2 * process->n + EM_GAMMA_HYPER;
}

/* Writes a random theta near the mean of the prior, from the random numbers first, first + 1, ...
 * of the draw. */
void em_gamma_process_start(const em_gamma_process *process, const em_draw *draw, uint64_t first,
                            double *theta);

/* Adds the log prior density of theta, Jacobian included, to *log_density, and its gradient to
 * gradient [em_gamma_process_size]. */
void em_gamma_process_add_prior(const em_gamma_process *process, const double *theta,
                                double *log_density, double *gradient);

/* Computes r [n]. Returns false if an element is not finite. */
bool em_gamma_process_weights(const em_gamma_process *process, const double *theta, double *r);

/* Adds to gradient [em_gamma_process_size] the gradient with respect to theta of a function of r,
 * whose derivatives with respect to r are slope [n]. */
void em_gamma_process_add_slope(const em_gamma_process *process, const double *theta,
                                const double *slope, double *gradient);

/*
 * A diagonal metric of theta: for each element, the Fisher information of the prior and about that
 * of the documents. The information of the prior on the logarithm of a gamma variable is its shape.
 * In the Chinese restaurant process a document of `length` tokens has about r_k log(1 + length /
 * R) tables of topic k, R = sum_k r_k, and their number is nearly Poisson. So the information of D
 * documents on r_k is about S / r_k, with S = D log(1 + length / R). The derivative of r_k by log
 * E_k is w_k = E_k exp(-T_k), which is about r_k. So the metric is
 *
 *     log E_k: 1 + w_k S,  log T_k: d_k + T_k^2 w_k S,
 *     log alpha: shape + sum_k d_k,  log gamma, log c: shape + n
 *
 * It is positive everywhere. It need not be exact, because the metric does not change the
 * stationary distribution.
 */
typedef struct em_gamma_documents {
    double number, length; /* D; mean number of tokens of a document */
} em_gamma_documents;

/* Computes this metric. No array of `ask` that it uses is NULL: theta, metric, own, weight and
 * slope have em_gamma_process_size elements each, in the order of the parameters. */
void em_gamma_process_diagonal(const em_gamma_process *process, em_gamma_documents documents,
                               const em_diagonal *ask);
