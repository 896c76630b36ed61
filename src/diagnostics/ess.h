/*
 * Chains in halves, and the effective sample size of numbers of them by Geyer's initial monotone
 * sequence, as diagnostics/diag.h describes it. Private to the room.
 */
#ifndef EM_DIAGNOSTICS_ESS_H
#define EM_DIAGNOSTICS_ESS_H

#include "emass/status.h"
#include "par/subcommunicator.h"

#include <stdbool.h>
#include <stdint.h>

/* The first and the last half of each chain as chains of their own, 2 c and 2 c + 1; of an odd
 * number of draws the middle one is in neither. */
typedef struct em_halves {
    int64_t n, length;
    int64_t n_draw;
    const double *x;    /* [n / 2][n_draw] */
    int64_t first, all; /* these n are, with those of a team, first ... first + n - 1 of all */
} em_halves;

/* With a second pass over the residuals: exact when all are equal, so that a stuck chain has
 * variance 0. Local. */
double em_mean_of(int64_t n, const double *x);
double em_variance_of(int64_t n, const double *x, double mean);

/* Work space for one thread. */
typedef struct em_ess em_ess;
em_status em_ess_create(em_ess **out);
void em_ess_destroy(em_ess **ess);

enum { EM_ESS_SERIES = 3 };

/* Room for halves like these; `together`: a team has them. Local. Errors: EM_EMEMORY. */
em_status em_ess_reserve(em_ess *ess, const em_halves *h, bool together);

/* Means and variances [h->n] of the halves of up to EM_ESS_SERIES numbers of chains like those of
 * `h`, with the bits of em_mean_of and em_variance_of. Local. */
void em_half_moments(em_ess *ess, const em_halves *h, int n_series, const double *const *series,
                     double *const *mean, double *const *variance);

/*
 * S / tau, at most S log10 S, of up to EM_ESS_SERIES numbers of chains like those of `h`, whose own
 * draws are not looked at; NaN for halves of fewer than 3 draws, and when all are equal. Where
 * `team` is not NULL, each of its ranks has the count[member] chains dealt to it. Local, or
 * Collective over the team. Errors: EM_EMEMORY, on all of its ranks.
 */
em_status em_ess_of(em_ess *ess, const em_halves *h, const em_subcommunicator *team,
                    const int64_t *count, int n_series, const double *const *series, double *out);

#endif
