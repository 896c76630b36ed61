/* Messages between ranks outside the grid: reductions over all ranks, and pieces of data from one
 * rank to another. A world of one rank makes no call of MPI. */
#pragma once

#include "emass/status.h"

#include <stddef.h>
#include <stdint.h>

/* Agrees on a failure that has a place in the common work, such as a line of a file. Every rank
 * returns the status and message of the failing rank with the smallest `place`; of ranks with equal
 * places, of the lowest. The message names the rank unless the error is in the input or the
 * request. Unlike em_agree it has no time limit. Collective. */
em_status em_agree_first(em_status status, int64_t place);

/* Replaces x[i] by the sum, the smallest or the largest of x[i] over all ranks. Collective. */
void em_world_sum(int64_t n, int64_t *x);
void em_world_smallest(int64_t n, double *x);
void em_world_largest(int64_t n, double *x);

/* The sum of x over the ranks before this one. Collective. */
int64_t em_world_sum_before(int64_t x);

/* Gathers the `n` elements of `size` bytes of every rank, in the order of the ranks, on all ranks.
 * *all has *total elements. Collective. Errors: EM_EMEMORY, agreed. Freed by em_release. */
em_status em_world_gather(int64_t n, size_t size, const void *mine, int64_t *total, void *all);

/* Sends `bytes` bytes to another rank, which receives as many; a receiver with `data` NULL discards
 * them. Both wait for each other. Local to the two. */
void em_send(int rank, int64_t bytes, const void *data);
void em_receive(int rank, int64_t bytes, void *data);

/* Messages that are being sent; the data must not change until em_outbox_finish. Each is passed
 * twice: before em_outbox_open to count them, then to send them. */
typedef struct em_outbox em_outbox;

/* Local. Errors: EM_EMEMORY. */
em_status em_outbox_create(em_outbox **out);
em_status em_outbox_open(em_outbox *outbox);

/* Sends like em_send, without waiting. Local. */
void em_outbox_send(em_outbox *outbox, int rank, int64_t bytes, const void *data);

/* Waits until all messages are received, and frees the outbox; NULL-safe. Local. */
void em_outbox_finish(em_outbox **outbox);
