/*
 * Ranks that do one thing together: peers of a grid, one after the other, in teams of as many. A
 * rank that is in none has a team of size 0, and makes none of the calls below.
 */
#ifndef EM_PAR_SUBCOMMUNICATOR_H
#define EM_PAR_SUBCOMMUNICATOR_H

#include "par/grid.h"

#include <stddef.h>

typedef struct em_subcommunicator em_subcommunicator;

/* `n_team` teams of `size` groups, from the first group on; n_team * size of them at most.
 * Collective over the peer ranks. Errors: EM_EMEMORY, agreed. */
em_status em_subcommunicator_create(const em_grid *grid, int64_t n_team, int64_t size,
                                    em_subcommunicator **out);
void em_subcommunicator_destroy(
    em_subcommunicator **team); /* NULL-safe. Collective over the peer ranks. */

int64_t
em_subcommunicator_size(const em_subcommunicator *team); /* 0: this rank is in none. Local. */
int64_t
em_subcommunicator_member(const em_subcommunicator *team); /* which of them this rank is. Local. */

/* The largest x[i] of its ranks, none of them NaN, in place. Collective over the team. */
void em_subcommunicator_maximum(const em_subcommunicator *team, int64_t n, double *x);

/* The items of `size` bytes of all its ranks, count[member] of each, one after the other in `all`,
 * where a rank's own are already. Fewer than 2^31 in all. Collective over the team. */
void em_subcommunicator_gather(const em_subcommunicator *team, size_t size, const int64_t *count,
                               void *all);

/* To each member send_count[member] of the items of `send`, from each receive_count[member], one
 * after the other. Fewer than 2^31 in all. Collective over the team. */
void em_subcommunicator_exchange(const em_subcommunicator *team, size_t size,
                                 const int64_t *send_count, const void *send,
                                 const int64_t *receive_count, void *receive);

#endif
