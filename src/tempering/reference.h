/* Reference distributions of ladders (posterior/tempered.h): normal distributions and the prior of
 * a model. */
#pragma once

#include "mass/low_rank_sum.h"
#include "mass/mass.h"
#include "posterior/noncentring.h"
#include "posterior/tempered.h"

/* N(0, diag(scale^2)), scale [dim]. Local. Errors: EM_EMEMORY. */
em_status em_reference_normal(int64_t dim, const double *scale, em_reference **out);

/* N(mean, inflate^2 covariance), with covariance an array of the structure. Local. Errors:
 * EM_NONFINITE if the covariance is not positive definite; EM_EMEMORY. */
em_status em_reference_of_covariance(em_structure structure, int64_t dim, const double *mean,
                                     const double *covariance, double inflate, em_reference **out);

/* N(mean, inflate^2 W), where `number` are the numbers of a mass W of low rank. Local. Errors:
 * EM_NONFINITE if W is not positive definite; EM_EMEMORY. */
em_status em_reference_of_low_rank(const em_mass_form *form, const double *mean,
                                   const double *number, double inflate, em_reference **out);

/* The prior of a model that can draw from it (emass/model/prior.h) and outlives the reference. Its
 * variances, for masses, are estimated from 256 draws with `seed`. `map` is that of
 * em_reference_transform. Local. Errors: EM_EMEMORY, those of the model. */
em_status em_reference_prior(em_model *model, uint64_t seed, const em_noncentring *map,
                             em_reference **out);

/* Declares that a distribution that is no mixture is one of the model's parameters, while positions
 * are in the coordinates of `map`. So its density is multiplied by the Jacobian determinant, and
 * its draws are mapped. `map` must outlive it and may change. Local. */
void em_reference_transform(em_reference *reference, const em_noncentring *map);

/* Copies the mean of a normal distribution [dim], in the coordinates of positions. Local. */
void em_reference_mean(const em_reference *reference, double *out);

/* A mixture of n distributions with log weights log_weight [n]. It borrows the distributions.
 * Local. Errors: EM_EMEMORY. */
em_status em_reference_mixture(int64_t dim, int64_t n, em_reference *const *part,
                               const double *log_weight, em_reference **out);

void em_reference_destroy(em_reference **reference); /* NULL-safe. Local. */

/* The covariance of a normal distribution as an array of the structure. In a dense array, a
 * distribution that is not dense has only its diagonal. For the prior it is the variances. Local.
 */
void em_reference_covariance(const em_reference *reference, em_structure structure, double *out);

/* The covariance of a diagonal distribution or one of low rank, or the variances of the prior, as a
 * term of a sum, which borrows it. Local. */
em_low_rank_term em_reference_term(const em_reference *reference, double weight);

/* Stores a normal distribution as numbers and restores it: mean [dim], then L [dim] or [dim][dim]
 * with covariance L L^T, or the numbers of a mass W of low rank that is the covariance. Local. */
typedef struct em_reference_form {
    em_structure structure;
    int64_t dim;
    int64_t most_rank; /* 0: not of low rank */
} em_reference_form;

em_reference_form em_reference_form_of(const em_reference *reference);
int64_t em_reference_size(const em_reference_form *form);
void em_reference_write(const em_reference *reference, double *number);
em_status em_reference_read(const em_reference_form *form, const double *number,
                            em_reference **out);
