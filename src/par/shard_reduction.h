/*
 * Numbers of which every shard of a group has some, and which are added again and again, as a
 * gradient is. Where they are many, and the ranks of the group are on one node, they stand in
 * memory that all of them see: each adds a stretch of them in place, and nothing is sent. Beside
 * them is then a panel that all of them write and read.
 */
#ifndef EM_PAR_SHARD_REDUCTION_H
#define EM_PAR_SHARD_REDUCTION_H

#include "par/grid.h"

typedef struct em_shard_reduction em_shard_reduction;

/* Room for n of them, zeroed; the grid outlives it. Collective over the shard ranks, which fail
 * together. Errors: EM_EMEMORY. */
em_status em_shard_reduction_create(const em_grid *grid, int64_t n, em_shard_reduction **out);
void em_shard_reduction_destroy(em_shard_reduction **addends); /* NULL-safe. Local. */

/* This rank's, 64-byte aligned, to be written between two sums. Local. */
double *em_shard_reduction_own(const em_shard_reduction *addends);

/* The first n of all shards, added, become each one's own, the same bits on all of them; up to
 * seven behind them may change. Collective over the shard ranks. */
void em_shard_reduction_sum(em_shard_reduction *addends, int64_t n);

/* The panel, of as many numbers; NULL: there is no such memory. Local. */
double *em_shard_reduction_panel(const em_shard_reduction *addends);

/* Until all shards are here: what each has written before, all see then. Collective over the shard
 * ranks; of addends with a panel. */
void em_shard_reduction_wait(const em_shard_reduction *addends);

/* out [n] = the sums of numbers first .. first + n - 1 of all shards, none of which is written
 * meanwhile: the same bits as those of em_shard_reduction_sum. Local; of addends with a panel. */
void em_shard_reduction_add(const em_shard_reduction *addends, int64_t first, int64_t n,
                            double *out);

#endif
