/*
 * The tree-depth cap of NUTS in the initial phase, for runs of many chains. At each adaptation
 * update all chains wait for the longest tree, and the longest of many trees is much longer than
 * most. So trees are limited to the depth that three in four of them do not exceed. Pure. All
 * Local.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { EM_DEPTHS = 12, EM_FIRST_DEPTH = 3, EM_MANY_CHAINS = 64 };

/* Counts a tree of `depth` doublings in count[EM_DEPTHS]; `saturated`: the cap ended it, and it
 * counts as one doubling deeper. */
void em_tree_depth_observe(double depth, bool saturated, double *count);

/* The cap for the next trees: the depth that three in four of the counted trees did not exceed. It
 * is scaled by `ratio`, the step size of the counted trees over the next one. 0: no cap. */
int64_t em_tree_depth_limit(const double *count, double ratio);
