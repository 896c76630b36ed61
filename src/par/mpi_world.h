/* Worlds, grids and their communicators, for the rooms that call MPI themselves. */
#pragma once

#include "par/grid.h"
#include "par/world.h"

#include <mpi.h>

typedef struct em_world_options {
    void (*say)(void *to, const char *text); /* what em_say says, on rank 0; NULL: to nobody */
    void *to;
    bool may_abort; /* a failure that cannot be agreed on ends all ranks of the communicator */
} em_world_options;

/* Starts MPI, for the program and for a host that has no MPI of its own: a process that no launcher
 * started gets neither a daemon nor transports, and a rank that waits yields its core. Sets
 * variables of the environment that MPI reads, where they are not set. Collective over the
 * processes. */
void em_world_initialise_mpi(int *argc, char ***argv);

/* A world of the ranks of a communicator, which is duplicated; it is not entered. Collective over
 * the communicator. Errors: EM_EMEMORY, agreed. */
em_status em_world_create(MPI_Comm ranks, const em_world_options *options, em_world **out);
void em_world_destroy(em_world **world); /* NULL-safe. Collective over its ranks. */

/* Says that all ranks have agreed by another collective on this rank's last failure. Local. */
void em_world_agreed(void);

MPI_Comm em_world_ranks(void); /* of the world that was entered. Local. */
MPI_Comm em_world_node(void);  /* those of its ranks that see the same memory. Local. */

MPI_Comm em_grid_world(const em_grid *grid);  /* all ranks. Local. */
MPI_Comm em_grid_shards(const em_grid *grid); /* the group's. Local. */
MPI_Comm em_grid_peers(const em_grid *grid);  /* the same shard of every group. Local. */
