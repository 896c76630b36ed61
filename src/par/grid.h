/*
 * The process grid: ranks = groups x shards. A group of `shards` ranks holds one block of chains;
 * each of its ranks owns one shard of the data. Sums over chains are exact, so they do not depend
 * on the distribution of chains over ranks.
 */
#pragma once

#include "emass/status.h"

#include <stdint.h>

typedef struct em_grid em_grid;

/* Arranges the ranks of the world as a grid. The number of chains need not be a multiple of that of
 * groups. Collective. Errors, agreed: EM_ECONFIG if n_shard does not divide the number of ranks, or
 * there are more groups than chains. */
em_status em_grid_create(int64_t n_chain, int64_t n_shard, em_grid **out);
/* Arranges the ranks as a grid, as em_grid_create, but allows more groups than chains. The last
 * groups then have no chain. */
em_status em_grid_create_any(int64_t n_chain, int64_t n_shard, em_grid **out);
void em_grid_destroy(em_grid **grid); /* Collective. */

/* The division of `n_item` items into `n_part` contiguous parts, of which the first ones may have
 * one item more: the first item of a part, and the part that has an item. Local. */
int64_t em_partition_first(int64_t n_item, int64_t n_part, int64_t part);
int64_t em_partition_of(int64_t n_item, int64_t n_part, int64_t item);

int64_t em_grid_n_chain(const em_grid *grid);       /* of the run. Local. */
int64_t em_grid_first_chain(const em_grid *grid);   /* of this rank. Local. */
int64_t em_grid_n_local_chain(const em_grid *grid); /* of this rank. Local. */
int64_t em_grid_n_group(const em_grid *grid);       /* Local. */
int64_t em_grid_group(const em_grid *grid);         /* of this rank. Local. */
int64_t em_grid_n_shard(const em_grid *grid);       /* Local. */
int64_t em_grid_shard(const em_grid *grid);         /* of this rank. Local. */

/* sum[i] = sum over all chains of the run of x[c][i]; `x` is [n_local_chain][n]. The terms are
 * added as integers at fixed binary places (math/exact.h), so that the result has the same bits on
 * any number of ranks; the error of a term is below 2^-64 of the largest one. NaN if a term is not
 * finite. One all-reduce over the peer ranks for 65536 sums; every rank gets the result.
 * Collective. Errors: EM_EMEMORY, agreed. */
em_status em_grid_sum_chains(em_grid *grid, int64_t n, const double *x, double *sum);

/* Sums over chains in the same way, for rows that are not in memory all at once. Between begin and
 * end a rank adds the rows `x` [n] of its chains one after another, and calls no other sum over
 * chains. Begin and end are Collective. Errors of begin: EM_EMEMORY, agreed. */
em_status em_grid_begin_sum(em_grid *grid, int64_t n);
void em_grid_add_to_sum(em_grid *grid, int64_t n, const double *x); /* Local. */
void em_grid_end_sum(em_grid *grid, int64_t n, double *sum);

/* out[n_chain][n] = the rows x[n_local_chain][n] of all chains, in chain order, on every rank.
 * Collective over the peer ranks. Errors: EM_EMEMORY, agreed. */
em_status em_grid_gather_chains(const em_grid *grid, int64_t n, const double *x, double *out);

/* Rows distributed over ranks like the chains of a grid, each of which has `per_chain` rows. */
typedef struct em_grid_items {
    const em_grid *grid;
    int64_t per_chain;
} em_grid_items;

/* Moves rows of n numbers from one distribution to another one over the same ranks and shards, with
 * the same number of rows in all. x has the rows of this rank's chains of `from`, out gets those of
 * its chains of `to`. Collective over the peer ranks. Errors: EM_EMEMORY, agreed. */
em_status em_grid_move_items(em_grid_items from, em_grid_items to, int64_t n, const double *x,
                             double *out);

/* The largest x[i] over all ranks, in place; NaN never wins. Collective over the world. */
void em_grid_maximum(const em_grid *grid, int64_t n, double *x);

/* The sum of x[i] over all ranks modulo 2^64, in place. Collective over the world. */
void em_grid_sum_keys(const em_grid *grid, int64_t n, uint64_t *x);

/* Merges the binned sums (math/binned.h) of the shards of this group, in place: em_binned_values of
 * the result has the same bits on all of them. Collective over the shard ranks. */
void em_grid_sum_binned(const em_grid *grid, int64_t n, double *bins);

/* Adds `x` [n] over the shards of this group, in place; nothing to do for one shard. Collective
 * over the shard ranks. */
void em_grid_sum_shards(const em_grid *grid, int64_t n, double *x);

/* Adds integers in the same way. Collective over the shard ranks. */
void em_grid_sum_integers(const em_grid *grid, int64_t n, int64_t *x);

/* Sends bytes[s] bytes from out[s] to each other shard s, in two calls. The first exchanges
 * lengths: taken[s] is the number of bytes from shard s, 0 for this shard. The second fills `in`
 * with the data, ordered by sender. Collective over the shard ranks. */
void em_grid_exchange_lengths(const em_grid *grid, const int64_t *bytes, int64_t *taken);
void em_grid_exchange(const em_grid *grid, const int64_t *bytes, const void *const *out,
                      const int64_t *taken, void *in);

/* x has n items of `size` bytes. Each shard of this group has computed its own items
 * (em_partition_first); afterwards every shard has all of them. Collective over the shard ranks. */
void em_grid_gather_shards(const em_grid *grid, int64_t n, int64_t size, void *x);

/* Copies x [n] of the first rank of the group to its others. Collective over the shard ranks. */
void em_grid_copy_first_shard(const em_grid *grid, int64_t n, uint64_t *x);

/* A communicator of the group for external code: a pointer to an MPI_Comm, valid as long as the
 * grid. Collective over the ranks of a group. */
const void *em_grid_lend_ranks(em_grid *grid);

/* To be called by all ranks of a group after a sum has shown that one of them failed. Each returns
 * the status of the lowest failing rank and has its message, which names the rank. Collective over
 * the shard ranks. */
em_status em_grid_share_failure(const em_grid *grid, em_status status);

/* The transpose for diagnostics. At first each rank holds rows of `n_column` numbers of its chains,
 * local[n_local_chain][n_row][n_column]. The chains of each column are divided into `n_part` parts
 * (em_partition_first). Part p of column k is item k * n_part + p of n_column * n_part items, which
 * are divided among the groups; n_part > 1 needs as many groups as items. Afterwards each rank
 * holds its own items, column[own][chains of the part][n_row]. Collective over the peer ranks.
 * Errors: EM_EMEMORY, agreed. */
em_status em_grid_transpose(const em_grid *grid, int64_t n_row, int64_t n_column, int64_t n_part,
                            const double *local, double *column);

/* Seconds of a clock that only goes forward. Local. */
double em_clock(void);
