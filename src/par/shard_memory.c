#include "par/shard_memory.h"

#include "par/mapped.h"
#include "par/mpi_world.h"

#include <stddef.h>

/* Whether all shards of the group are on this node, so that they can share memory. */
static bool see_each_other(MPI_Comm shards, int n_shard)
{
    MPI_Group group, node;
    int rank, place = 0;
    bool all = true;

    MPI_Comm_group(shards, &group);
    MPI_Comm_group(em_world_node(), &node);
    for (rank = 0; all && rank < n_shard; rank++) {
        MPI_Group_translate_ranks(group, 1, &rank, node, &place);
        all = place != MPI_UNDEFINED;
    }
    MPI_Group_free(&group);
    MPI_Group_free(&node);
    return all;
}

void *em_shard_memory(const em_grid *grid, int64_t bytes)
{
    MPI_Comm shards = em_grid_shards(grid);
    const int n_shard = (int)em_grid_n_shard(grid);
    const bool makes = em_grid_shard(grid) == 0;
    em_mapped_place where = {.descriptor = -1, .bytes = bytes};
    void *found = NULL;

    if (n_shard == 1 || !see_each_other(shards, n_shard))
        return NULL;
    if (makes)
        found = em_mapped_make(&where);
    MPI_Bcast(&where, sizeof where, MPI_BYTE, 0, shards);
    if (!makes)
        found = em_mapped_find(&where, true);
    int all = found != NULL;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, shards);
    if (makes)
        em_mapped_close(&where);
    if (!all) {
        em_mapped_release(found, bytes);
        found = NULL;
    }
    return found;
}
