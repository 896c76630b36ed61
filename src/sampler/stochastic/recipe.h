/*
 * The general recipe for stochastic gradient samplers (Ma, Chen & Fox 2015; EQUATIONS 13): every
 * continuous sampler of exp(-H(z)) is one choice of a positive semidefinite D(z) and a
 * skew-symmetric Q(z). Users supply D and Q. The state z of one chain is theta and any auxiliary
 * variables. All Local.
 */
#pragma once

#include "base/memory.h"
#include "emass/status.h"

#include <stdint.h>

/* The functions of the user. `user` is passed to each of them; z is [dim]. */
typedef struct em_recipe {
    int64_t dim;
    void *user;
    /* slope [dim] = grad H(z), exact or with noise. An error ends the step. */
    em_status (*slope)(void *user, const double *z, double *slope);
    /* D and Q, [dim][dim]. */
    void (*matrices)(void *user, const double *z, double *D, double *Q);
    /* OPTIONAL: gamma_i = sum_j d(D_ij + Q_ij) / dz_j; NULL: by central differences. */
    void (*divergence)(void *user, const double *z, double *gamma);
    /* OPTIONAL: covariance [dim][dim] of the noise in slope, which is subtracted from the injected
     * noise. */
    const double *V;
} em_recipe;

typedef struct em_recipe_stepper em_recipe_stepper;

/* `recipe` is borrowed. Errors: EM_EMEMORY. */
em_status em_recipe_create(em_owner *owner, const em_recipe *recipe, em_recipe_stepper **out);

/*
 * One step of size eps, of order 1, from standard normals [dim]:
 *
 *     z <- z + eps [-(D + Q) grad H + Gamma] + N(0, 2 eps D - eps^2 (D + Q) V (D + Q)^T),
 *
 * where the covariance is projected on the positive semidefinite matrices. Allocates nothing.
 * Errors: those of slope.
 */
em_status em_recipe_step(em_recipe_stepper *stepper, double eps, const double *normals, double *z);
