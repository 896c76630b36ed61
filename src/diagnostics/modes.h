/*
 * Chains in different modes of the posterior: clusters of chains whose draws do not overlap. All
 * Local.
 *
 * For one number, the range of a chain is from the 5 % to the 95 % quantile of its draws. Chains
 * are in one cluster if their ranges overlap, directly or through those of other chains. Clusters
 * are formed by settled chains only: chains whose four quarters have means that differ by little
 * compared with the spread of their draws. So a chain that drifts or stands still does not form a
 * mode. A chain that has not settled joins the cluster that it overlaps, unless it overlaps two, as
 * a chain that crosses between modes does. If half of the chains or more have not settled, there is
 * no result. Over several numbers, two chains are in one mode if no number has them in two
 * clusters.
 */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EM_MODES_LISTED = 16 };

/* The modes from all numbers together. */
typedef struct em_modes {
    /* 0: no number has more than one cluster; the other members are then undefined */
    int64_t count;
    int64_t n_chain;               /* of the run */
    int64_t unsettled;             /* chains that are in none */
    int64_t size[EM_MODES_LISTED]; /* numbers of chains of the largest modes, in descending order */
} em_modes;

/* Finds the clusters of chains for one number after the other. */
typedef struct em_mode_finder em_mode_finder;

/* Freed by em_release_owner. Errors: EM_EMEMORY. */
em_status em_mode_finder_create(int64_t n_chain, int64_t n_draw, em_mode_finder **out);

/*
 * Finds the clusters of a number from its draws [n_chain][n_draw]. Returns the smallest gap between
 * clusters, in standard deviations within them; 0: there is one cluster, or no result, as for fewer
 * than 16 draws or draws that are not finite.
 */
double em_mode_finder_examine(em_mode_finder *finder, const double *draws);

/* The cluster of each chain for the last number, of which there were several, in order of
 * increasing value; -1: none. Borrowed. */
const int64_t *em_mode_finder_clusters(const em_mode_finder *finder);

/*
 * The results so far as sums [em_mode_finder_width]. Ranks that examine different numbers add them
 * (modulo 2^64) element by element. Borrowed; may be written.
 */
int64_t em_mode_finder_width(const em_mode_finder *finder);
uint64_t *em_mode_finder_sums(em_mode_finder *finder);

/* The modes by all numbers so far. Errors: EM_EMEMORY. */
em_status em_mode_finder_count(const em_mode_finder *finder, em_modes *out);

/* Whether chains are in several modes and nearly all of them have settled there. The others may
 * cross. */
static inline bool em_modes_are_settled(const em_modes *modes)
{
    return modes->count > 1 && modes->unsettled <= modes->n_chain / 16;
}

/* Whether chains stayed in separate modes while draws were added, from `before` to `now`: there
 * were several modes, now there are at least as many, and the chains have settled in them. More
 * draws may show more modes. If they show fewer, some chains have crossed. */
static inline bool em_modes_stay_separate(const em_modes *before, const em_modes *now)
{
    return before->count > 1 && em_modes_are_settled(now) && now->count >= before->count;
}

/* "2 modes (2 and 2 of 4 chains)". */
void em_modes_describe(const em_modes *modes, size_t bytes, char *text);
