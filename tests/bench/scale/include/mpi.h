/*
 * The mpi.h of a library that is built for SimGrid's SMPI: each call is counted, by its size, and
 * preceded by the time that the model has taken (../scale.c).
 */
#ifndef TESTS_BENCH_SCALE_MPI_H
#define TESTS_BENCH_SCALE_MPI_H

#include <smpi/mpi.h>

/* Before a call in which the caller sends `count` elements of `type`; any time is simulated first.
 */
void scale_meet(const char *name, long long count, MPI_Datatype type, MPI_Comm ranks);
int scale_transpose(const void *send, const int *count, const int *first, MPI_Datatype type,
                    void *receive, const int *receive_count, const int *receive_first,
                    MPI_Datatype receive_type, MPI_Comm ranks);
double scale_clock(void);
void scale_spend(void); /* simulates the time that the model has taken */

/* SMPI's own Iallreduce sends everything to everybody; here it waits, as one does right after. */
#define MPI_Iallreduce(send, receive, count, type, op, ranks, request)                             \
    (scale_meet("agree", (count), (type), (ranks)), *(request) = MPI_REQUEST_NULL,                 \
     (MPI_Allreduce)((send), (receive), (count), (type), (op), (ranks)))
#define MPI_Allreduce(send, receive, count, type, op, ranks)                                       \
    (scale_meet("allreduce", (count), (type), (ranks)),                                            \
     (MPI_Allreduce)((send), (receive), (count), (type), (op), (ranks)))
#define MPI_Bcast(data, count, type, root, ranks)                                                  \
    (scale_meet("broadcast", (count), (type), (ranks)),                                            \
     (MPI_Bcast)((data), (count), (type), (root), (ranks)))
#define MPI_Allgather(send, count, type, receive, each, into, ranks)                               \
    (scale_meet("allgather", (count), (type), (ranks)),                                            \
     (MPI_Allgather)((send), (count), (type), (receive), (each), (into), (ranks)))
#define MPI_Allgatherv(send, count, type, receive, counts, firsts, into, ranks)                    \
    (scale_meet("allgather", (count), (type), (ranks)),                                            \
     (MPI_Allgatherv)((send), (count), (type), (receive), (counts), (firsts), (into), (ranks)))
/* How SMPI keeps track of communicators, in time that grows with the ranks of all of them, is no
 * time of the rank's: its clock stands still but for the messages. */
#define MPI_Comm_dup(ranks, copy)                                                                  \
    (smpi_bench_end(), (MPI_Comm_dup)((ranks), (copy)), smpi_bench_begin())
#define MPI_Comm_split(ranks, colour, key, part)                                                   \
    (smpi_bench_end(), (MPI_Comm_split)((ranks), (colour), (key), (part)), smpi_bench_begin())
/* Between neighbours. To look for a message again and again would be simulated each time: it waits.
 */
#define MPI_Isend(data, count, type, to, key, ranks, request)                                      \
    (scale_spend(), (MPI_Isend)((data), (count), (type), (to), (key), (ranks), (request)))
#define MPI_Iprobe(from, key, ranks, there, status)                                                \
    (scale_spend(), *(there) = 1, (MPI_Probe)((from), (key), (ranks), (status)))
/* SMPI's own sends what is empty, too: as many messages as there are pairs of ranks. */
#define MPI_Alltoallv scale_transpose
#define MPI_Wtime()   scale_clock()

#endif
