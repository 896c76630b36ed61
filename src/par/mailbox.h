/*
 * Messages from one group of ranks to another, without a collective call. The sender names the
 * group that receives a message and a key. The receiver names only the key. Each rank of a group
 * writes to the rank of the same shard in the other group, so that all ranks of a group receive the
 * same messages.
 */
#pragma once

#include "par/grid.h"

typedef struct em_mailbox em_mailbox;

/* Creates a mailbox between the groups of a grid, which outlives it. Collective. Errors:
 * EM_EMEMORY, agreed. */
em_status em_mailbox_create(const em_grid *grid, em_mailbox **out);
void em_mailbox_destroy(em_mailbox **mailbox); /* NULL-safe; waits for what was sent. Collective. */

/* Sends a copy of x [n] to a group, which receives it by `key`, at least 0 and below 2^28. Does not
 * wait. Local. Errors: EM_EMEMORY. */
em_status em_mailbox_put(em_mailbox *mailbox, int64_t group, int64_t key, int64_t n,
                         const double *x);

/* Waits for n numbers with that key from any group. Rows of one group and key arrive in order.
 * Local. */
void em_mailbox_take(em_mailbox *mailbox, int64_t key, int64_t n, double *x);
