/* The communicators of the grid, for the rooms that speak MPI themselves (io, app). */
#ifndef EM_PAR_MPI_GRID_H
#define EM_PAR_MPI_GRID_H

#include "par/grid.h"

#include <mpi.h>

MPI_Comm em_grid_world(const em_grid *grid);  /* all ranks. Local. */
MPI_Comm em_grid_shards(const em_grid *grid); /* the group's. Local. */
MPI_Comm em_grid_peers(const em_grid *grid);  /* the same shard of every group. Local. */

#endif
