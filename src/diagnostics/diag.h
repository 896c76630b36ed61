/*
 * Convergence diagnostics of Vehtari, Gelman, Simpson, Carpenter, Buerkner (2021),
 * "Rank-normalization, folding, and localization: an improved R-hat", equal to the R package
 * posterior and to ArviZ. All Local but em_diagnose_together. `draws` is [n_chain][n_draw], one
 * parameter.
 *
 * If the two differ, this code follows posterior, which the authors of the paper wrote:
 *   constant draws, or a constant quantile indicator (ties): NaN (ArviZ: ESS = all draws);
 *   one chain: R-hat of its two halves (ArviZ: NaN);
 *   draws folded at -a and +a alike, or a median at infinity: R-hat NaN (ArviZ: R-hat of the bulk);
 *   infinite draws: tail ESS NaN (ArviZ: a number); they have ranks, so bulk ESS and R-hat exist;
 *   fewer than 6 draws a chain: ESS NaN; up to 11, or no positive pair of autocorrelations (draws
 *   that alternate): half the draws (ArviZ: n log10 n for 4 to 9 and for alternating ones);
 *   halves of odd length: Geyer's sequence ends one pair earlier, as in Stan, which tells only
 *   where the chains disagree so much that it never turns negative.
 * There are two exceptions, in which posterior is wrong: for fewer than 4 draws a chain all results
 * are NaN, and "constant" means equal, not within 2e-16, which would depend on the units.
 */
#pragma once

#include "diagnostics/visits.h"
#include "emass/status.h"
#include "par/subcommunicator.h"

#include <stdbool.h>
#include <stdint.h>

enum { EM_DIAGNOSED_QUANTILES = 3 };

/* The diagnostics of one parameter that a summary prints; NaN if undefined. */
typedef struct em_diagnosis {
    double mean, sd, mcse_mean;
    double ess_bulk, ess_tail;
    double r_hat; /* the larger of the rank-normalised split and the folded one */
    double quantile[EM_DIAGNOSED_QUANTILES]; /* at 5, 50 and 95 %; NaN: em_quantiles has it */
    bool constant;                           /* all draws are equal */
} em_diagnosis;

/* Diagnoses by the draws that they are of (diagnostics/diagnoses.h). */
typedef struct em_diagnoses em_diagnoses;

/* Work space for one thread, which grows as needed and is reused for many parameters. */
typedef struct em_diag em_diag;
em_status em_diag_create(em_diag **out);
void em_diag_destroy(em_diag **diag);

/* Bounds every later ESS by that of the draws' visits (diagnostics/visits.h); NULL: no bound.
 * `visits` outlives `diag` and has the same numbers of chains and draws. Not for
 * em_diagnose_together. */
void em_diag_set_visits(em_diag *diag, em_visits *visits);

/* Makes later calls of em_diagnose use the diagnoses in `known`, and add theirs to it; NULL: none.
 * em_diagnose_together does not use it. `known` outlives `diag`. All diagnoses in it are of the
 * same number of chains and of the same visits. */
void em_diag_set_known(em_diag *diag, em_diagnoses *known);

/* Errors: EM_EMEMORY. */
em_status em_diagnose(em_diag *diag, int64_t n_chain, int64_t n_draw, const double *draws,
                      em_diagnosis *out);

/* Computes only R-hat, bulk and tail ESS, for stop rules, which takes less time; mean, sd and
 * mcse_mean are NaN, unless they were known. Errors: EM_EMEMORY. */
em_status em_diagnose_convergence(em_diag *diag, int64_t n_chain, int64_t n_draw,
                                  const double *draws, em_diagnosis *out);

/* Computes the same, bit for bit, by all ranks of `comm` together. Each rank passes the `draws` of
 * its share of the `n_chain` chains (em_partition_first), at least one chain. Collective over
 * `comm`. Errors: EM_EMEMORY, on all of its ranks. */
em_status em_diagnose_together(em_diag *diag, const em_subcommunicator *comm, int64_t n_chain,
                               int64_t n_draw, const double *draws, em_diagnosis *out);

/*
 * Nested R-hat of Margossian, Hoffman, Sountsov, Riou-Durand, Vehtari and Gelman (2024), "Nested
 * R-hat: assessing the convergence of Markov chain Monte Carlo when running many short chains",
 * equal to rhat_nested of the R package posterior, for `n_superchain` contiguous superchains of
 * n_chain / n_superchain chains each. sqrt(1 + B / W), B the variance of the superchains' means, W
 * the mean over superchains of the variance between their chains' means and of the variance within
 * their chains. NaN for one superchain, for draws that are not finite, and if all draws are equal.
 */
double em_nested_r_hat(int64_t n_superchain, int64_t n_chain, int64_t n_draw, const double *draws);

/* Quantiles, type 7 (linear interpolation), of all draws together; probability in [0, 1].
 * `out` may alias `probability`. Errors: EM_EMEMORY. */
em_status em_quantiles(em_diag *diag, int64_t n, const double *draws, int64_t n_probability,
                       const double *probability, double *out);

/* The quantile at a probability if the diagnosis has it; else NaN. */
double em_diagnosed_quantile(const em_diagnosis *diagnosis, double probability);

/* Energy Bayesian fraction of missing information of one chain: sum of squared differences of
 * successive energies over the sum of squared deviations. NaN for fewer than 2 draws. */
double em_ebfmi(int64_t n_draw, const double *energy);

/* Computes em_ebfmi from energies that are added one by one: state[EM_EBFMI_STATE] is zeroed before
 * the first. */
enum { EM_EBFMI_STATE = 5 };
void em_ebfmi_add(double *state, double energy);
double em_ebfmi_of(const double *state);

/* The longest run of draws in which a chain does not move, from log densities that are added one by
 * one. state[EM_STILL_STATE] is zeroed before the first. A rejection counts 1. */
enum { EM_STILL_STATE = 4 };
void em_still_add(double *state, double log_density);
double em_still_longest(const double *state);

/* Whether a chain is stuck. `longest` is em_still_longest of the chain, which has `length` draws;
 * all chains together have `n_draw` draws, with mean acceptance rate `acceptance`. True if a series
 * of rejections of this length is unlikely by chance and at least EM_STILL_DRAWS long, beyond 1000
 * draws EM_STILL_DRAWS sqrt(length / 1000), or if all draws of the chain are equal. */
bool em_still_is_stuck(double longest, double length, double n_draw, double acceptance);
