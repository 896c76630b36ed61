/* The launcher of this process, from environment variables. All Local. */
#pragma once

#include <stdbool.h>

/* The number of ranks that a launcher (mpirun, a PMI launcher, srun) started; 0: no launcher. */
int em_launched_ranks(void);

/* Whether a launcher started this process, even one that does not say how many ranks it started. */
bool em_is_launched(void);
