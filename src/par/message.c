#include "par/message.h"

#include "base/memory.h"
#include "par/mpi_world.h"
#include "par/world.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The size of a piece in bytes. Larger data are sent in pieces, because MPI counts in int and eager
 * buffers are small. */
enum { PIECE = 1 << 24, TAG = 1 };

em_status em_agree_first(em_status status, int64_t place)
{
    int64_t first = status < 0 ? place : INT64_MAX;
    int failing = INT_MAX;

    if (em_world_size() == 1)
        return status < 0 ? status : EM_OK;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT64_T, MPI_MIN, em_world_ranks());
    if (status < 0 && place == first)
        failing = em_world_rank();
    MPI_Allreduce(MPI_IN_PLACE, &failing, 1, MPI_INT, MPI_MIN, em_world_ranks());
    if (failing == INT_MAX)
        return EM_OK;
    status = em_world_share_failure(em_world_ranks(), failing, status, em_error_text());
    if (em_exit_status(status) == 1 && strncmp(em_error_text(), "rank ", 5) != 0)
        em_fail(status, "rank %d: %s", failing, em_error_text());
    em_world_agreed();
    return status;
}

static void reduce(void *x, int64_t n, MPI_Datatype type, MPI_Op op)
{
    for (char *next = x; em_world_size() > 1 && n > 0; n -= PIECE, next += (size_t)PIECE * 8)
        MPI_Allreduce(MPI_IN_PLACE, next, n < PIECE ? (int)n : PIECE, type, op, em_world_ranks());
}

void em_world_sum(int64_t n, int64_t *x)
{
    reduce(x, n, MPI_INT64_T, MPI_SUM);
}

void em_world_smallest(int64_t n, double *x)
{
    reduce(x, n, MPI_DOUBLE, MPI_MIN);
}

void em_world_largest(int64_t n, double *x)
{
    reduce(x, n, MPI_DOUBLE, MPI_MAX);
}

int64_t em_world_sum_before(int64_t x)
{
    int64_t sum = 0;

    if (em_world_rank() == 0 && em_world_size() == 1)
        return 0;
    MPI_Exscan(&x, &sum, 1, MPI_INT64_T, MPI_SUM, em_world_ranks());
    return em_world_rank() == 0 ? 0 : sum; /* rank 0's is not defined */
}

/* Computes where the elements of each rank begin among all elements. first[size] is the number of
 * all. */
static void find_first(int64_t n, int64_t *first)
{
    const int size = em_world_size();

    first[1] = n;
    if (size > 1)
        MPI_Allgather(&n, 1, MPI_INT64_T, first + 1, 1, MPI_INT64_T, em_world_ranks());
    first[0] = 0;
    for (int rank = 0; rank < size; rank++)
        first[rank + 1] += first[rank];
}

/* Gathers elements by one broadcast from each rank that has any, so that MPI's int does not limit
 * sizes. */
static void gather(size_t size, const void *mine, const int64_t *first, char *all)
{
    for (int rank = 0; rank < em_world_size(); rank++) {
        char *next = all + (size_t)first[rank] * size;
        int64_t bytes = (first[rank + 1] - first[rank]) * (int64_t)size;

        if (rank == em_world_rank() && bytes > 0)
            memcpy(next, mine, (size_t)bytes);
        for (; em_world_size() > 1 && bytes > 0; bytes -= PIECE, next += PIECE)
            MPI_Bcast(next, bytes < PIECE ? (int)bytes : PIECE, MPI_BYTE, rank, em_world_ranks());
    }
}

em_status em_world_gather(int64_t n, size_t size, const void *mine, int64_t *total, void *all)
{
    EM_SCOPED int64_t *own = NULL;
    char *gathered = NULL;
    em_status status = em_allocate(em_world_size() + 1, sizeof *own, &own);

    status = em_agree_first(status, 0);
    if (!status) {
        find_first(n, own);
        *total = own[em_world_size()];
        status = em_agree_first(em_allocate(*total, size, &gathered), 0);
    }
    if (!status)
        gather(size, mine, own, gathered);
    if (!status)
        memcpy(all, &gathered, sizeof gathered);
    return status;
}

void em_send(int rank, int64_t bytes, const void *data)
{
    for (const char *next = data; bytes > 0; bytes -= PIECE, next += PIECE)
        MPI_Send(next, bytes < PIECE ? (int)bytes : PIECE, MPI_BYTE, rank, TAG, em_world_ranks());
}

/* Receives messages for which there is no memory, because their sender waits until they are
 * received. */
static void receive_nothing(int rank, int64_t bytes)
{
    static char piece[PIECE];

    for (; bytes > 0; bytes -= PIECE)
        MPI_Recv(piece, PIECE, MPI_BYTE, rank, TAG, em_world_ranks(), MPI_STATUS_IGNORE);
}

void em_receive(int rank, int64_t bytes, void *data)
{
    if (!data)
        receive_nothing(rank, bytes);
    for (char *next = data; data && bytes > 0; bytes -= PIECE, next += PIECE)
        MPI_Recv(next, bytes < PIECE ? (int)bytes : PIECE, MPI_BYTE, rank, TAG, em_world_ranks(),
                 MPI_STATUS_IGNORE);
}

struct em_outbox {
    int64_t n, capacity;
    MPI_Request *request; /* NULL: they are only counted */
};

em_status em_outbox_create(em_outbox **out)
{
    return em_allocate(1, sizeof **out, out);
}

void em_outbox_send(em_outbox *outbox, int rank, int64_t bytes, const void *data)
{
    for (const char *next = data; bytes > 0; bytes -= PIECE, next += PIECE) {
        if (!outbox->request)
            outbox->capacity++;
        else if (outbox->n < outbox->capacity)
            MPI_Isend(next, bytes < PIECE ? (int)bytes : PIECE, MPI_BYTE, rank, TAG,
                      em_world_ranks(), &outbox->request[outbox->n++]);
    }
}

em_status em_outbox_open(em_outbox *outbox)
{
    return em_allocate(outbox->capacity, sizeof *outbox->request, &outbox->request);
}

void em_outbox_finish(em_outbox **out)
{
    em_outbox *outbox = *out;

    if (!outbox)
        return;
    for (int64_t i = 0; i < outbox->n; i++)
        MPI_Wait(&outbox->request[i], MPI_STATUS_IGNORE);
    em_release_all(&outbox->request, out);
}
