/*
 * The tree-depth cap of NUTS in the initial phase, for runs of many chains. At each adaptation
 * update all chains wait for the longest tree, and the longest of many trees is long. So trees are
 * ended at the depth that three in four of them do not exceed. Pure. All Local.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { EM_DEPTHS = 12, EM_FIRST_DEPTH = 3, EM_MANY_CHAINS = 64 };

/* Counts a tree of `depth` doublings in count[EM_DEPTHS]; `saturated`: the cap ended it, and it
 * counts as one doubling deeper. */
void em_tree_depth_observe(double depth, bool saturated, double *count);

/* The cap of the next trees: three in four of those counted were no deeper. Their step size was
 * `ratio` times the next one, and the cap is scaled accordingly. 0: no cap. */
int64_t em_tree_depth_limit(const double *count, double ratio);
