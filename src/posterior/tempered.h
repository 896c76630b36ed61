/*
 * Densities between a reference law r, which is normalised and can be drawn from, and the posterior
 * p: log pi = (1 - beta) log r + beta log p, on the unconstrained scale. Kernels use such a
 * posterior like any other.
 */
#pragma once

#include "posterior/posterior.h"

typedef struct em_reference em_reference;

/* A reference law. Each one derives its own struct with this as the first member. */
struct em_reference {
    /* The log density at theta [dim] and its gradient [stride], which are replaced; of a chain
     * number of the run. Local. Errors: those of the model, where r is its prior. */
    em_status (*evaluate)(em_reference *reference, int64_t chain, const double *theta,
                          double *log_density, double *gradient);
    /* An independent draw theta [dim], counted by `draw`. Local. Errors: likewise. */
    em_status (*draw)(em_reference *reference, const em_draw *draw, double *theta);
};

/* Where a chain stands between a reference and the posterior. beta 0: the reference; 1: the
 * posterior. */
typedef struct em_temperature {
    double beta;
    em_reference *reference;
    const double *precision; /* [dim] 1 over its variances: its part of a metric */
} em_temperature;

/*
 * For blocks of up to `n_chain` chains, whose numbers begin with first_chain: chain c has the
 * temperature of[c - first_chain], which may change between evaluations. Chains at beta 0 cost no
 * evaluation of `parent`. Its metric is beta G + (1 - beta) diag(precision), with G that of the
 * model. `parent` and `of` outlive it. Destroyed by em_posterior_destroy. Local.
 * Errors: EM_EMEMORY.
 */
em_status em_posterior_create_tempered(em_posterior *parent, int64_t n_chain, int64_t first_chain,
                                       const em_temperature *of, em_posterior **out);

/* log pi and its gradient from those of r and p; a density p that is not finite counts as 0 where
 * beta is 0. Local. */
double em_tempered_density(double beta, double log_r, double log_p);
void em_tempered_gradient(double beta, int64_t n, const double *of_r, const double *of_p,
                          double *out);
