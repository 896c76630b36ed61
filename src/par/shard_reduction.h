/*
 * A sum over the shards of a group that is computed repeatedly, such as a gradient. Where the
 * vector is long and the ranks of the group are on one node, it is kept in shared memory: each rank
 * sums one range of elements in place, and no message is sent. The shared memory then also holds a
 * panel, which all of them may write and read.
 */
#pragma once

#include "par/grid.h"

#include <stdbool.h>

typedef struct em_shard_reduction em_shard_reduction;

/* Allocates n numbers a shard, zeroed. The grid must outlive it. Collective over the shard ranks.
 * Errors, agreed among them: EM_EMEMORY. */
em_status em_shard_reduction_create(const em_grid *grid, int64_t n, em_shard_reduction **out);
void em_shard_reduction_destroy(em_shard_reduction **reduction); /* NULL-safe. Local. */

/* This rank's numbers, 64-byte aligned. They are to be written between two sums. Local. */
double *em_shard_reduction_own(const em_shard_reduction *reduction);

/* Replaces the first n numbers of each shard by their sum over all shards, with the same bits on
 * all of them. Up to seven numbers after them may change. Collective over the shard ranks. */
void em_shard_reduction_sum(em_shard_reduction *reduction, int64_t n);

/* The panel, which has n numbers; NULL: memory is not shared. Local. */
double *em_shard_reduction_panel(const em_shard_reduction *reduction);

/* The numbers of all shards, [n_shard][*room]; NULL: memory is not shared. Local. */
double *em_shard_reduction_all(const em_shard_reduction *reduction, int64_t *room);

/* Further shared memory of half a panel and 64 bytes; NULL: memory is not shared. Local. */
void *em_shard_reduction_half_panel(const em_shard_reduction *reduction);

/* Work for a shard that waits for others: does a small piece of it, or returns false if nothing is
 * left. Local. */
typedef struct em_meanwhile {
    bool (*work)(void *context);
    void *context;
} em_meanwhile;

/* A barrier: afterwards all shards see what each has written before. Until the others are there it
 * does `meanwhile` (NULL: nothing). Only with a panel. Collective over the shard ranks. */
void em_shard_reduction_wait(const em_shard_reduction *reduction, const em_meanwhile *meanwhile);

/* out [n] = the sums of numbers first .. first + n - 1 over all shards, with the same bits as those
 * of em_shard_reduction_sum. No shard may write its numbers meanwhile. Only with a panel. Local. */
void em_shard_reduction_add(const em_shard_reduction *reduction, int64_t first, int64_t n,
                            double *out);
