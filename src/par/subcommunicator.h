/* Subcommunicators. The peer ranks of a grid are divided, in order, into sets of equal size, and
 * the ranks of a set do one computation together. A rank in none of the sets has a subcommunicator
 * of size 0 and must not make the calls below. */
#pragma once

#include "par/grid.h"

#include <stddef.h>

typedef struct em_subcommunicator em_subcommunicator;

/* `n_group` subcommunicators of `size` ranks each, from the first peer on. Collective over the peer
 * ranks. Errors: EM_EMEMORY, agreed. */
em_status em_subcommunicator_create(const em_grid *grid, int64_t n_group, int64_t size,
                                    em_subcommunicator **out);
void em_subcommunicator_destroy(
    em_subcommunicator **communicator); /* NULL-safe. Collective over the peer ranks. */

int64_t em_subcommunicator_size(
    const em_subcommunicator
        *communicator); /* its number of ranks; 0: this rank is in none. Local. */
int64_t em_subcommunicator_member(
    const em_subcommunicator *communicator); /* the index of this rank in it. Local. */

/* The largest x[i] of its ranks, none of them NaN, in place. Collective over its ranks. */
void em_subcommunicator_maximum(const em_subcommunicator *communicator, int64_t n, double *x);

/* Gathers items of `size` bytes, count[member] of each rank, into `all` in the order of members.
 * The own items of a rank must already be there. Fewer than 2^31 items in all. Collective over its
 * ranks. */
void em_subcommunicator_gather(const em_subcommunicator *communicator, size_t size,
                               const int64_t *count, void *all);

/* Sends send_count[member] of the items of `send` to each member, and receives
 * receive_count[member] from each, in the order of members. Fewer than 2^31 in all. Collective over
 * its ranks. */
void em_subcommunicator_exchange(const em_subcommunicator *communicator, size_t size,
                                 const int64_t *send_count, const void *send,
                                 const int64_t *receive_count, void *receive);
