/*
 * The rungs of a ladder, their spacing, and the evidence that they give (README.md). All functions
 * are Local and pure.
 *
 * A ladder has one leg or two. Leg A goes from its reference (rung 0, beta 0) up to the target
 * (beta 1); leg B from the target down to its own reference (the last rung, beta 0).
 */
#pragma once

#include <stdint.h>

enum { EM_LEG_A, EM_LEG_B, EM_MOST_LEGS, EM_MOST_LEG_RUNGS = 128 };

typedef struct em_ladder {
    int64_t n_rung, target; /* the rung of beta 1 */
    int64_t n_leg;
    double beta[2 * EM_MOST_LEG_RUNGS];
} em_ladder;

/* A ladder whose legs have n rungs each, the target included, equally spaced in beta. */
em_ladder em_ladder_create(int64_t n_leg, int64_t n);

/* The leg of a rung; the target is of leg A. */
static inline int em_ladder_leg(const em_ladder *ladder, int64_t rung)
{
    return rung <= ladder->target ? EM_LEG_A : EM_LEG_B;
}

/* The leg whose reference the swap of rungs k and k + 1 uses. */
static inline int em_ladder_leg_of_pair(const em_ladder *ladder, int64_t k)
{
    return k < ladder->target ? EM_LEG_A : EM_LEG_B;
}

/* The sum of the rejection rates of a leg's pairs, rejection [n_rung - 1]: its communication
 * barrier. */
double em_ladder_barrier(const em_ladder *ladder, int leg, const double *rejection);

/*
 * Spaces the rungs of each leg equally in the barrier between each pair. That is about the
 * rejection rate if the rate is small, and more than the rate if it is near 1 (ladder.c). A leg of
 * *out has `n` rungs, or, if n is 0, ceil(2 em_ladder_barrier) + 1 but at least 3. near[rung of
 * *out]: the rung of `ladder` that is nearest, in beta, on the same leg.
 */
void em_ladder_respace(const em_ladder *ladder, int64_t n, const double *rejection, em_ladder *out,
                       int64_t *near);

/*
 * The log acceptance ratio of the swap of two states. w = log p - log r, with r the leg's
 * reference, for the state at beta; other_w that for the state at other_beta. A w that is not
 * finite (p is 0 there) counts as -inf. The swap is accepted if the logarithm of a uniform is below
 * the result.
 */
double em_swap_log_ratio(double beta, double w, double other_beta, double other_w);

/* The log of a mean of exponentials, stored relative to the largest. */
typedef struct em_log_mean {
    double most, sum, n; /* `sum` is the sum times exp(-most); all are 0 if n is 0 */
} em_log_mean;

void em_log_mean_add(double log_term, em_log_mean *of);
void em_log_mean_merge(const em_log_mean *from, em_log_mean *of);
double em_log_mean_value(const em_log_mean *of); /* NaN if there are no terms */

/*
 * Sums for one pair of rungs with distance db > 0 in beta: the mean of exp(db w / 2) over states at
 * the lower beta, and of exp(-db w / 2) over those at the higher one. Their ratio estimates the
 * ratio of the normalising constants (geometric bridge sampling, Meng and Wong 1996). Its variance
 * is always finite. That of the stepping-stone estimate, the mean of exp(-db w), is infinite if the
 * reference is broader than the posterior.
 */
typedef struct em_bridge {
    em_log_mean low, high;
} em_bridge;

/* log Z of a leg, and its standard error. */
typedef struct em_log_evidence {
    double value, error;
} em_log_evidence;

/*
 * log Z of a leg, from the sums of `n_unit` parts of a run, bridges[n_unit][n_rung - 1], which are
 * `each` parts of each ladder in order of time. The value is the sum over the leg's pairs of the
 * log mean of `low` minus that of `high`, pooled over the parts. The standard error is by the delta
 * method, from the variance of the parts and the autocorrelation of consecutive parts; NaN if there
 * are too few. influence [n_unit], or NULL: the influence of each part on the value. Their mean is
 * 0, and the standard error is that of their mean.
 */
em_log_evidence em_ladder_evidence(const em_ladder *ladder, int leg, int64_t n_unit, int64_t each,
                                   const em_bridge *bridges, double *influence);

/*
 * Combines both legs, weighted by their errors. The legs share the states at the target, so they
 * are not independent; the error is computed from the weighted influences.
 */
em_log_evidence em_ladder_combine(int64_t n_unit, int64_t each,
                                  const em_log_evidence leg[EM_MOST_LEGS],
                                  double *const influence[EM_MOST_LEGS]);
