#include "par/subcommunicator.h"

#include "base/memory.h"
#include "par/mpi_grid.h"
#include "par/world.h"

struct em_subcommunicator {
    MPI_Comm ranks; /* MPI_COMM_NULL: of no team */
    int size, member;
    int *count; /* [4 size] room for counts, and where they begin, twice */
};

em_status em_subcommunicator_create(const em_grid *grid, int64_t n_team, int64_t size,
                                    em_subcommunicator **out)
{
    const int64_t group = em_grid_group(grid);
    em_subcommunicator *team = NULL;
    em_status status = em_allocate(1, sizeof *team, &team);

    *out = NULL;
    if (!status)
        status = em_allocate(4 * size, sizeof *team->count, &team->count);
    status = em_agree(status);
    if (status) {
        if (team)
            em_release(&team->count);
        em_release(&team);
        return status;
    }
    MPI_Comm_split(em_grid_peers(grid), group < n_team * size ? (int)(group / size) : MPI_UNDEFINED,
                   (int)group, &team->ranks);
    if (team->ranks != MPI_COMM_NULL) {
        MPI_Comm_size(team->ranks, &team->size);
        MPI_Comm_rank(team->ranks, &team->member);
    }
    *out = team;
    return EM_OK;
}

void em_subcommunicator_destroy(em_subcommunicator **team)
{
    if (!*team)
        return;
    if ((*team)->ranks != MPI_COMM_NULL)
        MPI_Comm_free(&(*team)->ranks);
    em_release(&(*team)->count);
    em_release(team);
}

int64_t em_subcommunicator_size(const em_subcommunicator *team)
{
    return team->size;
}

int64_t em_subcommunicator_member(const em_subcommunicator *team)
{
    return team->member;
}

void em_subcommunicator_maximum(const em_subcommunicator *team, int64_t n, double *x)
{
    MPI_Allreduce(MPI_IN_PLACE, x, (int)n, MPI_DOUBLE, MPI_MAX, team->ranks);
}

/* As MPI has them: in count[0 ... size - 1], followed by where each member's begin. */
static void lay_out(const em_subcommunicator *team, const int64_t *given, int *count)
{
    int *first = count + team->size;

    for (int i = 0; i < team->size; i++) {
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

void em_subcommunicator_gather(const em_subcommunicator *team, size_t size, const int64_t *count,
                               void *all)
{
    MPI_Datatype item = item_of(size);

    lay_out(team, count, team->count);
    MPI_Allgatherv(MPI_IN_PLACE, team->count[team->member], item, all, team->count,
                   team->count + team->size, item, team->ranks);
    MPI_Type_free(&item);
}

void em_subcommunicator_exchange(const em_subcommunicator *team, size_t size,
                                 const int64_t *send_count, const void *send,
                                 const int64_t *receive_count, void *receive)
{
    int *from = team->count, *into = team->count + 2 * (ptrdiff_t)team->size;
    MPI_Datatype item = item_of(size);

    lay_out(team, send_count, from);
    lay_out(team, receive_count, into);
    MPI_Alltoallv(send, from, from + team->size, item, receive, into, into + team->size, item,
                  team->ranks);
    MPI_Type_free(&item);
}
