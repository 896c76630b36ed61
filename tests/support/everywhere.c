#include "support/everywhere.h"

#include "emass/status.h"

#include <check.h>
#include <mpi.h>

void assert_everywhere(bool holds, const char *what)
{
    int all = holds;

    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    ck_assert_msg(all, "%s: %s", what, em_error_text());
}
