/* Reference distributions of ladders (posterior/tempered.h): normal distributions and the prior of
 * a model. */
#pragma once

#include "mass/mass.h"
#include "posterior/tempered.h"

/* N(0, diag(scale^2)), scale [dim]. Local. Errors: EM_EMEMORY. */
em_status em_reference_normal(int64_t dim, const double *scale, em_reference **out);

/* N(mean, inflate^2 covariance), with covariance an array of the structure. Local. Errors:
 * EM_NONFINITE if the covariance is not positive definite; EM_EMEMORY. */
em_status em_reference_of_covariance(em_structure structure, int64_t dim, const double *mean,
                                     const double *covariance, double inflate, em_reference **out);

/* The prior of a model that can be drawn from (emass/model/prior.h) and outlives it. Its
 * variances, for masses, are those of 256 draws counted by `seed`. Local. Errors: EM_EMEMORY, those
 * of the model. */
em_status em_reference_prior(em_model *model, uint64_t seed, em_reference **out);

/* A mixture of n distributions with log weights log_weight [n]. It borrows the distributions.
 * Local. Errors: EM_EMEMORY. */
em_status em_reference_mixture(int64_t dim, int64_t n, em_reference *const *part,
                               const double *log_weight, em_reference **out);

void em_reference_destroy(em_reference **reference); /* NULL-safe. Local. */

/* The covariance of a normal law, an array of the structure, of a diagonal law in a dense array
 * too; of the prior its variances. Local. */
void em_reference_covariance(const em_reference *reference, em_structure structure, double *out);

/* What a normal law is made from again: mean [dim], then L [dim] or [dim][dim] with covariance
 * L L^T. Local. */
em_structure em_reference_structure(const em_reference *reference);
int64_t em_reference_size(em_structure structure, int64_t dim);
void em_reference_write(const em_reference *reference, double *number);
em_status em_reference_read(em_structure structure, int64_t dim, const double *number,
                            em_reference **out);
