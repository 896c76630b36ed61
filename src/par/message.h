/*
 * What ranks tell each other outside the grid: numbers about all of them, and pieces of data from
 * one to another. A world of one rank makes no call of MPI.
 */
#ifndef EM_PAR_MESSAGE_H
#define EM_PAR_MESSAGE_H

#include "emass/status.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Agrees on a failure that has a place in what the ranks did together: every rank returns the
 * status, and has the message, of the failing rank with the smallest `place`, the lowest such rank
 * where places are equal; the rank is named unless what was read or asked for is to blame. Unlike
 * em_agree it waits for as long as the others work. Collective.
 */
em_status em_agree_first(em_status status, int64_t place);

/* x[i] of all ranks, added, and the smallest and the largest; in place. Collective. */
void em_world_sum(int64_t n, int64_t *x);
void em_world_smallest(int64_t n, double *x);
void em_world_largest(int64_t n, double *x);

/* The sum of x over the ranks before this one. Collective. */
int64_t em_world_sum_before(int64_t x);

/*
 * The `n` elements of `size` bytes of every rank, in the order of the ranks, on all of them: *all
 * has *total elements; first[em_world_size() + 1], where not NULL, is where each rank's begin.
 * Collective. Errors: EM_EMEMORY, agreed. Freed by em_release.
 */
em_status em_world_gather(int64_t n, size_t size, const void *mine, int64_t *total, void *all,
                          int64_t *first);

/* Sends `bytes` bytes to another rank, which receives as many; with `data` NULL it lets them go.
 * Both wait for the other. Local to the two. */
void em_send(int rank, int64_t bytes, const void *data);
void em_receive(int rank, int64_t bytes, void *data);

/*
 * Messages on their way: what they are made of stays as it is until em_outbox_finish. They are sent
 * twice: before em_outbox_open to be counted, then in fact.
 */
typedef struct em_outbox em_outbox;

/* Local. Errors: EM_EMEMORY. */
em_status em_outbox_create(em_outbox **out);
em_status em_outbox_open(em_outbox *outbox);

/* Sends as em_send does, without waiting. Local. */
void em_outbox_send(em_outbox *outbox, int rank, int64_t bytes, const void *data);

/* Waits until all are received, and frees; NULL-safe. Local. */
void em_outbox_finish(em_outbox **outbox);

#endif
