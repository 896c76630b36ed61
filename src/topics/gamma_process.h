/*
 * A truncated gamma process as the prior of topics' weights r (EQUATIONS 23; Roychowdhury & Kulis
 * 2015), in unconstrained parameters, the logarithms of
 *
 *     T_k ~ Gamma(d_k, rate alpha),  E_k ~ Exp(rate c),  r_k = E_k exp(-T_k) + EM_LEAST_WEIGHT
 *
 * where atom k is of round d_k, of which each has Poisson(gamma) of them; alpha, gamma and c have
 * gamma priors. All Local.
 */
#pragma once

#include "emass/model.h"
#include "emass/model/metric.h"

/* So that every topic can be drawn: the smallest weight. */
#define EM_LEAST_WEIGHT 1e-7

typedef struct em_gamma_process {
    int64_t n, rounds;  /* atoms k has round 1 + rounds k / n */
    double shape, rate; /* of the priors of alpha, gamma and c */
} em_gamma_process;

/* Where its parameters are from the first of them on: log E [n], log T [n], log alpha, log gamma,
 * log c. */
enum { EM_GAMMA_HYPER = 3 };

static inline int64_t em_gamma_process_size(const em_gamma_process *process)
{
    return 2 * process->n + EM_GAMMA_HYPER;
}

/* A position near the mean of the prior, from numbers first, first + 1, ... of the draw. */
void em_gamma_process_place(const em_gamma_process *process, const em_draw *draw, uint64_t first,
                            double *theta);

/* Adds the log density of its parameters, with that of the logarithms, and its gradient. */
void em_gamma_process_add_prior(const em_gamma_process *process, const double *theta,
                                double *log_density, double *gradient);

/* r [n]. False where one is not finite. */
bool em_gamma_process_weights(const em_gamma_process *process, const double *theta, double *r);

/* Adds to the gradient what a derivative by r_k is worth: slope [n] is of r_k. */
void em_gamma_process_add_slope(const em_gamma_process *process, const double *theta,
                                const double *slope, double *gradient);

/*
 * A diagonal metric of those logarithms: how much prior and documents say of each. By the prior,
 * the shape of a gamma variable is the information on its logarithm. By documents, whose words sit
 * down at about r_k log(1 + length / R) tables of topic k each (R = sum r; the Chinese restaurant),
 * of a number whose law is nearly Poisson, so that they have the information 1 / r_k S on r_k, with
 * S = documents log(1 + length / R). With w_k = E_k exp(-T_k), the derivative of r_k by log E_k,
 *
 *     log E_k: 1 + w_k S,  log T_k: d_k + T_k^2 w_k S,
 *     log alpha: shape + sum_k d_k,  log gamma, log c: shape + n
 *
 * Positive everywhere, as good a guess as any other: a metric changes how chains move, not whereto.
 */
typedef struct em_gamma_documents {
    double number, length; /* of all of them; their mean */
} em_gamma_documents;

/* The arrays of `ask`, none of which is NULL, are of those parameters. */
void em_gamma_process_diagonal(const em_gamma_process *process, em_gamma_documents documents,
                               const em_diagonal *ask);
