/* Worlds, grids and their communicators, for the folders that call MPI themselves. */
#pragma once

#include "par/grid.h"
#include "par/world.h"

#include <mpi.h>

typedef struct em_world_options {
    void (*say)(void *to,
                const char *text); /* receives the texts of em_say on rank 0; NULL: dropped */
    void *to;
    bool may_abort; /* a failure that cannot be agreed on ends all ranks of the communicator */
} em_world_options;

/* Starts MPI, for the program and for a host that has not started it. A process without a launcher
 * gets neither a daemon nor transports, and a waiting rank yields its core. For this it sets
 * environment variables of MPI, unless they are set. Collective over the processes. */
void em_world_initialise_mpi(int *argc, char ***argv);

/* Creates a world for the ranks of a communicator, which it duplicates. Does not enter it.
 * Collective over the communicator. Errors: EM_EMEMORY, agreed. */
em_status em_world_create(MPI_Comm ranks, const em_world_options *options, em_world **out);
void em_world_destroy(em_world **world); /* NULL-safe. Collective over its ranks. */

/* Gives all ranks of a communicator the status and message of the failure on rank `failing`, where
 * `text` is the message; other ranks pass any. Collective. Returns that status. */
em_status em_world_share_failure(MPI_Comm ranks, int failing, em_status status, const char *text);

/* Records that all ranks have agreed on this rank's last failure by another collective call. Local.
 */
void em_world_agreed(void);

MPI_Comm em_world_ranks(void); /* of the world that was entered. Local. */
MPI_Comm em_world_node(void);  /* its ranks on this node. Local. */

MPI_Comm em_grid_world(const em_grid *grid);  /* all ranks. Local. */
MPI_Comm em_grid_shards(const em_grid *grid); /* the group's. Local. */
MPI_Comm em_grid_peers(const em_grid *grid);  /* the same shard of every group. Local. */
