/*
 * Chains in different modes of the posterior: clusters of chains whose draws do not overlap. All
 * Local.
 *
 * Of one number, a chain reaches from the 5 % to the 95 % quantile of its draws. Chains are in one
 * cluster where what they reach overlaps, directly or by way of others. Only chains that have
 * settled make clusters: the means of their four quarters differ by little beside their draws, so
 * that a chain that drifts or stands still is not taken for a mode. Another chain is in a cluster
 * that it overlaps, unless it overlaps two, as one that crosses. Nothing is said where half of the
 * chains or more have not settled.
 * Over several numbers, two chains are in one mode where no number puts them into two clusters.
 */
#pragma once

#include "emass/status.h"

#include <stddef.h>
#include <stdint.h>

enum { EM_MODES_LISTED = 16 };

/* What all numbers together show. */
typedef struct em_modes {
    int64_t count;     /* 0: no number has more than one cluster, and the rest is undefined */
    int64_t n_chain;   /* of the run */
    int64_t unsettled; /* chains that are in none */
    int64_t size[EM_MODES_LISTED]; /* chains in each of the largest, in descending order */
} em_modes;

/* Chains in the clusters of numbers that are looked at one by one. */
typedef struct em_mode_finder em_mode_finder;

/* Errors: EM_EMEMORY. */
em_status em_mode_finder_create(int64_t n_chain, int64_t n_draw, em_mode_finder **out);
void em_mode_finder_destroy(em_mode_finder **finder); /* NULL-safe. */

/*
 * Looks at the draws [n_chain][n_draw] of a number. Returns how far its clusters are apart, in
 * standard deviations within them, at the narrowest gap; 0: there is one cluster, or nothing can be
 * said, as of fewer than 16 draws or of draws that are not finite.
 */
double em_mode_finder_examine(em_mode_finder *finder, const double *draws);

/* The cluster of each chain in the number last looked at, by increasing value, -1 where it is in
 * none; borrowed. */
const int64_t *em_mode_finder_clusters(const em_mode_finder *finder);

/*
 * What the finder has found so far, for several ranks that look at different numbers to add up
 * (modulo 2^64) element by element: [em_mode_finder_width], borrowed, may be written.
 */
int64_t em_mode_finder_width(const em_mode_finder *finder);
uint64_t *em_mode_finder_sums(em_mode_finder *finder);

/* The modes by all numbers so far. Errors: EM_EMEMORY. */
em_status em_mode_finder_count(const em_mode_finder *finder, em_modes *out);

/* "2 modes (2 and 2 of 4 chains)". */
void em_modes_describe(const em_modes *modes, size_t bytes, char *text);
