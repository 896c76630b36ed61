#include "par/subcommunicator.h"

#include "base/memory.h"
#include "par/mpi_world.h"
#include "par/world.h"

struct em_subcommunicator {
    MPI_Comm ranks; /* MPI_COMM_NULL: of none */
    int size, member;
    int *count; /* [4 size] room for counts, and where they begin, twice */
};

em_status em_subcommunicator_create(const em_grid *grid, int64_t n_group, int64_t size,
                                    em_subcommunicator **out)
{
    const int64_t group = em_grid_group(grid);
    em_status status = em_allocate(1, sizeof **out, out);
    em_subcommunicator *communicator = *out;

    if (!status)
        status = em_allocate(4 * size, sizeof *communicator->count, &communicator->count);
    status = em_agree(status);
    if (status) {
        if (communicator)
            em_release(&communicator->count);
        em_release(out);
        return status;
    }
    MPI_Comm_split(em_grid_peers(grid),
                   group < n_group * size ? (int)(group / size) : MPI_UNDEFINED, (int)group,
                   &communicator->ranks);
    if (communicator->ranks != MPI_COMM_NULL) {
        MPI_Comm_size(communicator->ranks, &communicator->size);
        MPI_Comm_rank(communicator->ranks, &communicator->member);
    }
    return EM_OK;
}

void em_subcommunicator_destroy(em_subcommunicator **communicator)
{
    if (!*communicator)
        return;
    if ((*communicator)->ranks != MPI_COMM_NULL)
        MPI_Comm_free(&(*communicator)->ranks);
    em_release_all(&(*communicator)->count, communicator);
}

int64_t em_subcommunicator_size(const em_subcommunicator *communicator)
{
    return communicator->size;
}

int64_t em_subcommunicator_member(const em_subcommunicator *communicator)
{
    return communicator->member;
}

void em_subcommunicator_maximum(const em_subcommunicator *communicator, int64_t n, double *x)
{
    MPI_Allreduce(MPI_IN_PLACE, x, (int)n, MPI_DOUBLE, MPI_MAX, communicator->ranks);
}

/* Lays out counts as MPI has them: count[0 ... size - 1], and then the position at which the
 * numbers of each member begin. */
static void lay_out(const em_subcommunicator *communicator, const int64_t *given, int *count)
{
    int *first = count + communicator->size;

    for (int i = 0; i < communicator->size; i++) {
        count[i] = (int)given[i];
        first[i] = i > 0 ? first[i - 1] + count[i - 1] : 0;
    }
}

static MPI_Datatype item_of(size_t size)
{
    MPI_Datatype item;

    MPI_Type_contiguous((int)size, MPI_BYTE, &item);
    MPI_Type_commit(&item);
    return item;
}

void em_subcommunicator_gather(const em_subcommunicator *communicator, size_t size,
                               const int64_t *count, void *all)
{
    MPI_Datatype item = item_of(size);

    lay_out(communicator, count, communicator->count);
    MPI_Allgatherv(MPI_IN_PLACE, communicator->count[communicator->member], item, all,
                   communicator->count, communicator->count + communicator->size, item,
                   communicator->ranks);
    MPI_Type_free(&item);
}

void em_subcommunicator_exchange(const em_subcommunicator *communicator, size_t size,
                                 const int64_t *send_count, const void *send,
                                 const int64_t *receive_count, void *receive)
{
    int *from = communicator->count,
        *into = communicator->count + 2 * (ptrdiff_t)communicator->size;
    MPI_Datatype item = item_of(size);

    lay_out(communicator, send_count, from);
    lay_out(communicator, receive_count, into);
    MPI_Alltoallv(send, from, from + communicator->size, item, receive, into,
                  into + communicator->size, item, communicator->ranks);
    MPI_Type_free(&item);
}
