/*
 * Tempered densities log pi = (1 - beta) log r + beta log p between a reference r and the posterior
 * p, on the unconstrained scale. The reference is a normalised density from which independent draws
 * can be made. Kernels use a tempered posterior like any other.
 */
#pragma once

#include "base/memory.h"
#include "posterior/posterior.h"

typedef struct em_reference em_reference;

/* A reference distribution. The struct of each kind has this as its first member. */
struct em_reference {
    em_owner memory; /* of its arrays */
    /* Computes the log density at theta [dim] and its gradient [stride]; `chain` is the chain's
     * number in the run. Local. Errors: those of the model, if r is its prior. */
    em_status (*evaluate)(em_reference *reference, int64_t chain, const double *theta,
                          double *log_density, double *gradient);
    /* Draws theta [dim] independently; `draw` selects the random numbers. Local. Errors: likewise.
     */
    em_status (*draw)(em_reference *reference, const em_draw *draw, double *theta);
};

/* The temperature of a chain: beta 0 is the reference, beta 1 the posterior. */
typedef struct em_temperature {
    double beta;
    em_reference *reference;
    const double *precision; /* [dim] inverse variances of the reference: its part of a metric */
} em_temperature;

/*
 * Creates a tempered posterior for blocks of up to `n_chain` chains, whose numbers begin with
 * first_chain. Chain c has the temperature of[c - first_chain], which may change between
 * evaluations. For chains at beta 0, `parent` is not evaluated. The metric is beta G + (1 - beta)
 * diag(precision), where G is the model's. `parent` and `of` outlive the result, which
 * em_posterior_destroy destroys. Local. Errors: EM_EMEMORY.
 */
em_status em_posterior_create_tempered(em_posterior *parent, int64_t n_chain, int64_t first_chain,
                                       const em_temperature *of, em_posterior **out);

/* log pi and its gradient [n] from those of r and p. At beta 0 they are those of r, even if those
 * of p are not finite. Local. */
static inline double em_tempered_density(double beta, double log_r, double log_p)
{
    return beta == 0 ? log_r : beta == 1 ? log_p : (1 - beta) * log_r + beta * log_p;
}

void em_tempered_gradient(double beta, int64_t n, const double *of_r, const double *of_p,
                          double *out);
