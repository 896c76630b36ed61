/*
 * Hamiltonian dynamics with a metric G(theta) for a mass, for one chain (Girolami & Calderhead
 * 2011; EQUATIONS 2). With U = -log p and g = grad log p,
 *
 *     H = U + log|G| / 2 + p^T G^-1 p / 2,
 *     -dH/dtheta_k = g_k - tr(G^-1 dG_k) / 2 + v^T dG_k v / 2,  v = G^-1 p.
 *
 * Generalised leapfrog: of order 2, reversible and volume preserving where its implicit equations
 * are solved. All Local, but for the target, which may sum over shards.
 */
#pragma once

#include "emass/field.h"
#include "posterior/posterior.h"
#include "sampler/kernel/sampler.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct em_riemann_options {
    int metric;          /* em_riemann_metric */
    int64_t fixed_point; /* rounds; INT64_MIN: until it has converged */
} em_riemann_options;

typedef enum em_riemann_metric { EM_RIEMANN_FULL, EM_RIEMANN_DIAGONAL } em_riemann_metric;

extern const char *const em_riemann_metrics[];

/* The rows of those options, which are `member` of `type`. */
#define EM_RIEMANN_FIELDS(type, member)                                                            \
    EM_ROW_AS("metric", type, member.metric, EM_FIELD_CHOICE, int, .fallback = "full",             \
              .choices = em_riemann_metrics, .doc = "the model's metric, or its diagonal"),        \
        EM_ROW_AS("fixed_point", type, member.fixed_point, EM_FIELD_INT, int64_t, .minimum = 1,    \
                  .maximum = 1000, .fallback = "converge", .word = "converge",                     \
                  .doc = "rounds of the implicit solves: to convergence, or the papers' 1 to 3, "  \
                         "which bias (rhmc by 5 % of a variance with one round of step size 0.6)")

/* The metric where it was last placed, and room to work in; matrices [dim][dim], or [dim] where the
 * model's own is diagonal. */
typedef struct em_riemann {
    int64_t dim;
    bool diagonal;      /* only the diagonal of the model's metric counts */
    bool by_element;    /* the model's metric is diagonal */
    int64_t rounds;     /* of each fixed point; INT64_MIN: until it has converged */
    double *inverse;    /* G^-1 */
    double *factor;     /* lower L, G = L L^T */
    double *derivative; /* [dim][dim][dim]: dG_k; by_element: none */
    double *half_trace; /* [dim]: tr(G^-1 dG_k) / 2; by_element: none */
    double *at;         /* [dim]: where it was placed */
    double half_log_determinant;
    double *velocity, *start, *next; /* [dim] */
    double *before, *half, *back;    /* [dim]: of the last step, to see that it is reversible */
    double *there;                   /* G^-1 where that step led */
    em_posterior *posterior;         /* whose metric it is, */
    int64_t chain;                   /* and of which chain of the run */
} em_riemann;

/* What em_sampler_ops ask of a kernel that moves by it: the model's, whatever the options are. */
em_metric_kind em_riemann_metric_of(const void *options);

/* Errors: EM_EMEMORY. */
em_status em_riemann_create(int64_t dim, const em_riemann_options *options, em_riemann **out);
void em_riemann_destroy(em_riemann **riemann);

/* Evaluates metric and derivatives at theta, where chain `chain` is. Allocates the first time.
 * Errors: EM_NONFINITE where the metric is not positive definite; those of em_posterior_metric. */
em_status em_riemann_place(em_riemann *r, em_posterior *posterior, int64_t chain,
                           const double *theta);

/* p <- p + scale L z: with p = 0 and scale 1, N(0, G). */
void em_riemann_add_noise(const em_riemann *r, double scale, const double *z, double *p);

/* p^T G^-1 p / 2 */
double em_riemann_kinetic(em_riemann *r, const double *p);

/* A step of size eps from where the metric is placed; g is the gradient there. em_riemann_advance
 * solves p_1/2 = p - eps/2 dH/dtheta(theta, p_1/2) and theta' = theta + eps/2 [G^-1(theta) +
 * G^-1(theta')] p_1/2 and places the metric at theta'; then the caller evaluates the gradient
 * there; em_riemann_finish makes p' = p_1/2 - eps/2 dH/dtheta(theta', p_1/2) and, where it solves
 * to convergence, sees that the solves from there lead back: a step of which they do not is no step
 * of a reversible map, and Metropolis-Hastings would not be exact (Zappa, Holmes-Cerfon & Goodman
 * 2018 have the argument). Errors: EM_NONFINITE where a fixed point has not come to rest within
 * 1e-10 in 20 rounds, or the way back ends more than 1e-7 off; those of em_riemann_place. */
em_status em_riemann_advance(em_riemann *r, double eps, const double *g, double *theta, double *p);
em_status em_riemann_finish(em_riemann *r, double eps, const double *g, const double *theta,
                            double *p);
