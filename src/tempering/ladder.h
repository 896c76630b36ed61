/*
 * The rungs of a ladder, their spacing, and the evidence that they give (TEMPERING in README.md of
 * this room). All Local; every function is pure.
 *
 * A ladder has one leg or two. Leg A goes from its reference (rung 0, beta 0) up to the target
 * (beta 1); leg B from the target down to its own reference (the last rung, beta 0).
 */
#pragma once

#include "emass/status.h"

#include <stdint.h>

enum { EM_LEG_A, EM_LEG_B, EM_MOST_LEGS, EM_MOST_LEG_RUNGS = 128 };

typedef struct em_ladder {
    int64_t n_rung, target; /* the rung of beta 1 */
    int64_t n_leg;
    double beta[2 * EM_MOST_LEG_RUNGS];
} em_ladder;

/* Legs of n rungs each, the target counted in both, equally spaced in beta. */
em_ladder em_ladder_create(int64_t n_leg, int64_t n);

/* The leg of a rung; the target is of leg A. */
int em_ladder_leg(const em_ladder *ladder, int64_t rung);

/* The leg whose reference the swap of rungs k and k + 1 is about. */
int em_ladder_leg_of_pair(const em_ladder *ladder, int64_t k);

/* The sum of the rejection rates of a leg's pairs, rejection [n_rung - 1]: its communication
 * barrier. */
double em_ladder_barrier(const em_ladder *ladder, int leg, const double *rejection);

/*
 * The ladder whose rungs are equally far from each other in the cumulated rejection rates of this
 * one, each leg for itself: `n` rungs a leg, or, where n is 0, ceil(2 barrier) + 1, at least 3.
 * near[rung of *out]: the rung of `ladder` that is nearest, in beta, on the same leg.
 */
void em_ladder_respace(const em_ladder *ladder, int64_t n, const double *rejection, em_ladder *out,
                       int64_t *near);

/*
 * log of the ratio by which two states may swap. w = log p - log r of the leg's reference, of the
 * state at beta and of the one at other_beta. Not finite w (p is 0 there) counts as -inf. The swap
 * is made where the logarithm of a uniform is below it.
 */
double em_swap_log_ratio(double beta, double w, double other_beta, double other_w);

/* log of a mean of exponentials, by their largest. */
typedef struct em_log_mean {
    double most, sum, n; /* exp(-most) times the sum; all 0 where n is 0 */
} em_log_mean;

void em_log_mean_add(double log_term, em_log_mean *of);
void em_log_mean_merge(const em_log_mean *from, em_log_mean *of);
double em_log_mean_value(const em_log_mean *of); /* NaN where there is none */

/*
 * Of one pair of rungs, db > 0 apart: the mean of exp(db w / 2) over states at its lower beta, and
 * of exp(-db w / 2) at its higher one. Their ratio is that of the normalising constants (geometric
 * bridge sampling, Meng and Wong 1996). Its variance is always finite; that of exp(-db w), the
 * stepping stone, is not where the reference is broader than the posterior.
 */
typedef struct em_bridge {
    em_log_mean low, high;
} em_bridge;

/* log Z of a leg, and its standard error. */
typedef struct em_log_evidence {
    double value, error;
} em_log_evidence;

/*
 * From the bridges of `n_unit` parts of a run, bridges[n_unit][n_rung - 1], `each` of each ladder
 * in the order of time: the sum over the leg's pairs of the log mean of the low ones minus that of
 * the high ones, pooled over the parts; the error by how the parts differ, and by how alike those
 * that follow one another are (delta method). NaN where there is nothing to tell it from. influence
 * [n_unit], or NULL: what each part adds to the value; their mean is 0, and the error is that of
 * their mean.
 */
em_log_evidence em_ladder_evidence(const em_ladder *ladder, int leg, int64_t n_unit, int64_t each,
                                   const em_bridge *bridges, double *influence);

/*
 * Both legs in one, weighed by their errors. The legs share the states at the target, and so are
 * not independent: its error is that of the weighed influences.
 */
em_log_evidence em_ladder_combine(int64_t n_unit, int64_t each,
                                  const em_log_evidence leg[EM_MOST_LEGS],
                                  double *const influence[EM_MOST_LEGS]);
