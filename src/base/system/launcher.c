#include "base/system/launcher.h"

#include <stddef.h>
#include <stdlib.h>

int em_launched_ranks(void)
{
    /* Set per process by mpirun (Open MPI), Hydra and PMI launchers, and srun; not by sbatch. */
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return 0;
}

bool em_is_launched(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",   "PMI_RANK",
                                        "FLUX_TASK_RANK",       "PALS_RANKID", "ALPS_APP_PE"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return true;
    return em_launched_ranks() > 0;
}
