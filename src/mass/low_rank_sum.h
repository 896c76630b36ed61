/* Masses of low rank that are computed from others (mass/low_rank_sum.c). Local. */
#pragma once

#include "mass/estimator.h"

/* A mass of low rank, or a diagonal one (rank 0), and its weight in a sum. */
typedef struct em_low_rank_term {
    double weight;
    int64_t dim, rank;
    /* scales [dim], values [rank], directions [rank][dim], as in em_mass_low_rank */
    const double *number;
} em_low_rank_term;

/* Computes the numbers of a mass W of low rank for parameters first .. first + form->dim - 1. W^-1
 * is the weighted sum of the corresponding blocks of the inverses of the terms, up to the rank of
 * the form. Errors: EM_NONFINITE if the sum is not positive definite; EM_EMEMORY. */
em_status em_low_rank_sum(int64_t first, const em_mass_form *form, int n,
                          const em_low_rank_term *term, double *number);

/* Computes the covariance of draws as the numbers of such a mass: the directions of `mass`, which
 * has the same form, the variances of `draws` along them, and scales that give each parameter its
 * `variance` [dim]. `mass` should come from other draws, because its directions also fit the noise
 * of the draws that it comes from. Local. */
void em_low_rank_covariance(const em_mass_form *form, const double *mass, const double *variance,
                            const em_samples *draws, double *number);

/* The largest number of directions of masses of a dimension. A mass takes at most 16 MB for them,
 * so that each rung of a ladder may have one. */
int64_t em_low_rank_most(int64_t dim);
