/*
 * The criteria of the trajectory-length search. All Local.
 *
 * The first is the lag-1 autocorrelation of every coordinate, from sums pooled over the chains. As
 * long as that of some coordinate is high, a trajectory 1.7 times as long is tried. It is kept if
 * it is efficient enough.
 *
 * The second is the acceptance statistics of each chain, with trajectories of one length and one
 * step size. They show whether the curvature of the posterior varies so much that no single step
 * size suits all of it. The statistics of all chains are gathered before the test.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sums of one chain: leapfrog steps, then of every coordinate x, x^2, x_t x_t-1, the first x and
 * the last. */
static inline int64_t em_lag_size(int64_t dim)
{
    return 1 + 5 * dim;
}

/* Adds iteration number `iteration` (from 0) of a phase: position x [dim] from any centre. */
void em_lag_observe(int64_t dim, const double *x, double n_steps, int64_t iteration, double *sums);

/* From the pooled sums of n_chain chains x length iterations: the autocorrelation r [dim], and the
 * mean number of leapfrog steps. */
void em_lag_estimate(int64_t dim, double n_chain, double length, const double *pooled, double *r,
                     double *n_steps);

/* Whether the largest r is above 0.6. */
bool em_lag_is_long(int64_t dim, const double *r);

/*
 * Whether longer trajectories are kept. Efficiency is (1 - r) / (1 + r) / n_steps. True if that of
 * the worst coordinate is kept to 0.85, or the geometric mean over the worst coordinates (one to
 * three of each) is. `scratch`: [2 dim].
 */
bool em_trajectory_is_better(int64_t dim, const double *r_short, double steps_short,
                             const double *r_long, double steps_long, double *scratch);

/*
 * Whether steps of several stages pay whose mean size a stage is `step_size`, found for a mean
 * acceptance. They must be 1.5 times as long as a leapfrog step with that acceptance for a normal
 * distribution of `dim` dimensions and standard deviations 1; 1.1 standard deviations are enough.
 * Where curvature varies, they are shorter: the limit of stability of leapfrog is 2, that of two
 * stages 1.3 and of three 1.5 a stage.
 */
bool em_multistage_pays(int64_t dim, double acceptance, double step_size);

/* Statistics of one chain in a phase. All members are double, so that they can be gathered as rows.
 */
typedef struct em_acceptance_statistics {
    double length;      /* iterations */
    double acceptance;  /* sum of acceptance rates */
    double n_diverging; /* trajectories */
    double n_lost;      /* typical trajectories that diverge or accept at a rate below 0.001 */
} em_acceptance_statistics;

/* `typical`: the step size is not far above the one that dual averaging will keep. Only then can a
 * trajectory count as lost, as dual averaging tries steps that are much too long. */
void em_acceptance_observe(double acceptance, bool diverging, bool typical,
                           em_acceptance_statistics *statistics);

typedef enum em_acceptance_verdict {
    EM_ACCEPTANCE_EVEN,      /* one trajectory length and step size suit the whole posterior */
    EM_ACCEPTANCE_LOST,      /* the step size is too large in some regions */
    EM_ACCEPTANCE_DIVERGING, /* it is so large there that trajectories diverge */
    EM_ACCEPTANCE_UNEVEN     /* no single length is suitable: the curvature varies too much */
} em_acceptance_verdict;

/*
 * What the acceptance rates show about the region that the chains have visited, without the
 * outlying chains.
 * UNEVEN: one of these chains accepts less, compared with their mean, than chance explains for
 * constant curvature. DIVERGING: more than one trajectory in 1000 diverges, whatever its step; with
 * as many in its draws a run has not converged (diagnostics/limits.h). Only with `one_length`.
 * LOST: more than the share `most_lost` of the trajectories is lost. With `most_lost` 1 the steps
 * may not become shorter, and the verdict is neither. At a mean acceptance of 0.8 hardly any are
 * where curvature is constant in many dimensions: the energy error is normal with variance 0.26
 * then, and 6.9 is 13 standard deviations away. UNEVEN otherwise, if more than 1 % of the
 * trajectories diverge. EVEN with fewer than 20 iterations a chain. `one_length`: all trajectories
 * have the same length; those that end at a U-turn are never UNEVEN.
 */
em_acceptance_verdict em_judge_acceptance(int64_t n_chain,
                                          const em_acceptance_statistics *statistics,
                                          const bool *outlying, bool one_length, double most_lost);
