/*
 * Hamiltonian dynamics of one chain whose mass is a metric G(theta) (Girolami & Calderhead 2011;
 * EQUATIONS 2). With U = -log p and g = grad log p,
 *
 *     H = U + log|G| / 2 + p^T G^-1 p / 2,
 *     -dH/dtheta_k = g_k - tr(G^-1 dG_k) / 2 + v^T dG_k v / 2,  v = G^-1 p.
 *
 * The integrator is generalised leapfrog. It is of order 2, and reversible and volume preserving if
 * its implicit equations are solved. All Local, but evaluations of the posterior are Collective
 * over the ranks of a group of shards.
 */
#pragma once

#include "emass/field.h"
#include "posterior/posterior.h"
#include "sampler/kernel/sampler.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct em_riemann_options {
    int metric;          /* em_riemann_metric */
    int64_t fixed_point; /* rounds; INT64_MIN: until convergence */
} em_riemann_options;

typedef enum em_riemann_metric { EM_RIEMANN_FULL, EM_RIEMANN_DIAGONAL } em_riemann_metric;

extern const char *const em_riemann_metrics[];

/* The rows of these options in the field table of `type`, which has them as `member`. */
#define EM_RIEMANN_FIELDS(type, member)                                                            \
    EM_ROW_AS("metric", type, member.metric, EM_FIELD_CHOICE, int, .fallback = "full",             \
              .choices = em_riemann_metrics, .doc = "the model's metric, or its diagonal"),        \
        EM_ROW_AS("fixed_point", type, member.fixed_point, EM_FIELD_INT, int64_t, .minimum = 1,    \
                  .maximum = 1000, .fallback = "converge", .word = "converge",                     \
                  .doc = "rounds of fixed-point iteration in each implicit step: to "              \
                         "convergence, or the papers' 1 to 3, which cause a bias (in rhmc 5 "      \
                         "% of a variance with one round and step size 0.6)")

/* The metric at the position where it was last evaluated, and work space. Matrices are [dim][dim],
 * or [dim] if the model's metric is diagonal. */
typedef struct em_riemann {
    em_owner *owner; /* of its memory */
    int64_t dim;
    bool diagonal;      /* only the diagonal of the model's metric is used */
    bool by_element;    /* the model's metric is diagonal */
    int64_t rounds;     /* of each fixed-point iteration; INT64_MIN: until convergence */
    double *inverse;    /* G^-1 */
    double *factor;     /* lower L, G = L L^T */
    double *derivative; /* [dim][dim][dim]: dG_k; by_element: none */
    double *half_trace; /* [dim]: tr(G^-1 dG_k) / 2; by_element: none */
    double *at;         /* [dim]: the position of the metric */
    double half_log_determinant;
    double *velocity, *start, *next;     /* [dim] */
    double *theta, *momentum, *gradient; /* [stride] of the chain that is moving */
    double log_density;                  /* of that chain */
    double *before, *half, *back; /* [dim]: state of the last step, for the test of reversibility */
    double *there;                /* G^-1 at the end of that step */
    em_posterior *posterior;      /* the posterior whose metric it is */
    int64_t chain;                /* the number of the chain in the run */
} em_riemann;

/* em_sampler_ops.metric of kernels that use it: always EM_METRIC_FISHER, the model's. */
em_metric_kind em_riemann_metric_of(const void *options);

/* Errors: EM_EMEMORY. */
em_status em_riemann_create(em_owner *owner, int64_t dim, const em_riemann_options *options,
                            em_riemann **out);

/* Evaluates metric and derivatives at theta [dim], the position of chain `chain`. The first call
 * allocates memory. Errors: EM_NONFINITE if the metric is not positive definite; those of
 * em_posterior_metric. */
em_status em_riemann_set_position(em_riemann *r, em_posterior *posterior, int64_t chain,
                                  const double *theta);

/* p <- p + scale L z for standard normals z. With p = 0 and scale 1 this draws p ~ N(0, G). */
void em_riemann_add_noise(const em_riemann *r, double scale, const double *z, double *p);

/* The state of the chain that is moving: taken from chain c of a block, put back into it, and a
 * query at it. */
void em_riemann_take_state(em_riemann *r, const em_block *block, int64_t c);
void em_riemann_put_state(const em_riemann *r, em_block *block, int64_t c);
em_query em_riemann_query(em_riemann *r, const em_block *block, int64_t c);

/* p^T G^-1 p / 2 of the chain that is moving */
double em_riemann_kinetic(em_riemann *r);

/* One step of size eps of the chain that is moving, from the position at which the metric was last
 * evaluated. em_riemann_advance solves p_1/2 = p - eps/2 dH/dtheta(theta, p_1/2) and theta' = theta
 * + eps/2 [G^-1(theta) + G^-1(theta')] p_1/2, and evaluates the metric at theta'. Then the caller
 * evaluates the gradient at theta'. em_riemann_finish computes p' = p_1/2 - eps/2 dH/dtheta(theta',
 * p_1/2). If the options ask for convergence, it also tests that the step back from (theta', p')
 * ends at the start. If it does not, the map is not reversible there and Metropolis-Hastings would
 * not be exact (Zappa, Holmes-Cerfon & Goodman 2018). Errors: EM_NONFINITE if a fixed-point
 * iteration has not converged to 1e-10 in 20 rounds, or if the step back ends more than 1e-7 from
 * the start; those of em_riemann_set_position. */
em_status em_riemann_advance(em_riemann *r, double eps);
em_status em_riemann_finish(em_riemann *r, double eps);
