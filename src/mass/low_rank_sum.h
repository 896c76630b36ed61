/* Masses of low rank that are made of others (mass/low_rank_sum.c). Local. */
#pragma once

#include "mass/estimator.h"

/* A mass of low rank, or a diagonal one (rank 0), and its weight in a sum. */
typedef struct em_low_rank_term {
    double weight;
    int64_t dim, rank;
    const double *number; /* scales [dim], values [rank], directions [rank][dim], as
                             em_mass_low_rank has them */
} em_low_rank_term;

/* The numbers of the mass W of a form of low rank, of parameters first .. first + form->dim - 1,
 * with W^-1 = sum of weight times that part of the inverse of each term. Exact as far as its rank
 * allows. Errors: EM_NONFINITE where the sum is not positive definite; EM_EMEMORY. */
em_status em_low_rank_sum(int64_t first, const em_mass_form *form, int n,
                          const em_low_rank_term *term, double *number);

/* The covariance of draws as the numbers of such a mass: the directions of `mass`, numbers of the
 * same form, the variances of `draws` along them, and scales that give each parameter its
 * `variance` [dim]. The mass should come from other draws, as its directions differ from the rest
 * by chance, too. Local. */
void em_low_rank_covariance(const em_mass_form *form, const double *mass, const double *variance,
                            const em_samples *draws, double *number);

/* How many directions masses of a dimension have, at most: a mass takes 16 MB for them, so that
 * there may be one for each rung of a ladder. */
int64_t em_low_rank_most(int64_t dim);
