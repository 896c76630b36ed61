/*
 * How deep the trees of many chains may grow while they arrive. All chains wait for the longest
 * tree at each meeting, and it is the longer the more there are: of many, those that would go
 * deeper than most of the others are ended there. Pure. All Local.
 */
#ifndef EM_ADAPTATION_TRAJECTORY_TREE_DEPTH_H
#define EM_ADAPTATION_TRAJECTORY_TREE_DEPTH_H

#include <stdbool.h>
#include <stdint.h>

enum { EM_DEPTHS = 12, EM_FIRST_DEPTH = 3, EM_MANY_CHAINS = 64 };

/* Counts a tree of `depth` doublings, which was to double again (`saturated`), into
 * count[EM_DEPTHS].
 */
void em_tree_depth_observe(double depth, bool saturated, double *count);

/* The greatest depth of the next trees: three in four of those counted wanted no more, at
 * a step size `ratio` times the next one; 0: no limit. */
int64_t em_tree_depth_limit(const double *count, double ratio);

#endif
