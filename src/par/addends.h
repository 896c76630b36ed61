/*
 * Numbers of which every shard of a group has some, and which are added again and again, as a
 * gradient is. Where they are many, and the ranks of the group are on one node, they stand in
 * memory that all of them see: each adds a stretch of them in place, and nothing is sent.
 */
#ifndef EM_PAR_ADDENDS_H
#define EM_PAR_ADDENDS_H

#include "par/grid.h"

typedef struct em_addends em_addends;

/* Room for n of them, zeroed; the grid outlives it. Collective over the shard ranks, which fail
 * together. Errors: EM_EMEMORY. */
em_status em_addends_create(const em_grid *grid, int64_t n, em_addends **out);
void em_addends_destroy(em_addends **addends); /* NULL-safe. Local. */

/* This rank's, 64-byte aligned, to be written between two sums. Local. */
double *em_addends_own(const em_addends *addends);

/* The first n of all shards, added, become each one's own, the same bits on all of them; up to
 * seven behind them may change. Collective over the shard ranks. */
void em_addends_sum(em_addends *addends, int64_t n);

#endif
