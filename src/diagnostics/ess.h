/*
 * Splits chains into halves, and computes effective sample sizes from them by Geyer's initial
 * monotone sequence (diagnostics/diag.h). Private to this folder.
 */
#pragma once

#include "emass/status.h"
#include "par/subcommunicator.h"

#include <stdbool.h>
#include <stdint.h>

/* The halves of chain c are chains 2 c and 2 c + 1. The middle one of an odd number of draws is in
 * neither half. */
typedef struct em_halves {
    int64_t n, length;
    int64_t n_draw;
    const double *x; /* [n / 2][n_draw] */
    /* index of the first of these n halves among the `all` halves of all ranks */
    int64_t first, all;
} em_halves;

/* The halves as vectorised loops need them, eight side by side: element i of half 8 b + k is at
 * 8 (b length + i) + k. Columns beyond the last half are not used. em_lanes_positions gives the
 * index of each draw, [h->n / 2][h->n_draw]; -1: the draw is in neither half. All Local. */
int64_t em_lanes_size(const em_halves *h);
void em_lanes_positions(const em_halves *h, int64_t *place);
void em_lanes_fill(const em_halves *h, const double *x, double *lanes);

/* Subtracts the means [h->n] of the halves; exact where all draws of a half are equal. Local. */
void em_lanes_centre(const em_halves *h, double *lanes, double *mean);

/* The sums of squares [h->n] of the halves. Local. */
void em_lanes_squares(const em_halves *h, const double *lanes, double *square);

/* The mean, with a second pass over the residuals. It is exact if all are equal, so a stuck chain
 * has variance 0. Local. */
double em_mean_of(int64_t n, const double *x);
double em_variance_of(int64_t n, const double *x, double mean);

/* Work space for one thread. */
typedef struct em_ess em_ess;
em_status em_ess_create(em_ess **out);
void em_ess_destroy(em_ess **ess);

enum { EM_ESS_SERIES = 3 };

/* Allocates work space for such halves; `together`: ranks share the chains. Local. Errors:
 * EM_EMEMORY. */
em_status em_ess_reserve(em_ess *ess, const em_halves *h, bool together);

/* Series of the shape of `h`, whose member x is not read. */
typedef struct em_ess_series {
    const em_halves *h;
    const em_subcommunicator *comm;     /* NULL: this rank has all draws */
    const int64_t *count;               /* the number of chains of each rank of `comm` */
    int n;                              /* series, at most EM_ESS_SERIES */
    const double *lanes[EM_ESS_SERIES]; /* minus the means of the halves */
    const double *mean[EM_ESS_SERIES];  /* [h->all] the means of all halves */
} em_ess_series;

/*
 * The effective sample size S / tau of each series, at most S log10 S; NaN for halves of fewer than
 * 3 draws, and when all draws are equal. Local, or Collective over series->comm. Errors:
 * EM_EMEMORY, on all of its ranks.
 */
em_status em_ess_of(em_ess *ess, const em_ess_series *series, double *out);
