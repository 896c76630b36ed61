/* `--ranks N`: a command that starts its ranks itself. */
#pragma once

#include "emass/status.h"

#include <stdbool.h>

/*
 * Before MPI is started: takes `--ranks N` out of the command line of a command that has it. N > 1
 * starts that many ranks of this program, waits for them, and gives their exit status in *code;
 * *launched false: this process is to run the command. SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2
 * reach the ranks as SIGUSR1, a second SIGINT ends them. The launcher is EMASS_LAUNCHER (words
 * between blanks), else srun inside a Slurm job whose srun has the PMI of the MPI that is linked,
 * else that one's mpirun. Local. Errors: EM_EUSAGE, EM_EIO.
 */
em_status em_launch(int *argc, char **argv, bool *launched, int *code);

/*
 * The exit status of the process for a status. Launchers report every exit status but 0 as a
 * failure, in many lines. So a run that was stopped with a checkpoint ends with 0 if its own
 * status, 75, could be written into the file that EMASS_STATUS names on rank 0. Collective for
 * EM_ESTOPPED, else Local.
 */
int em_launched_exit(em_status status);

/*
 * To be called first in main. Sets OPENBLAS_NUM_THREADS=1 unless it is set, and starts the program
 * again so that OpenBLAS sees it. Otherwise OpenBLAS would start a thread for each core in every
 * rank when it is loaded, with 128 MB of address space each; where a limit does not allow so much,
 * the process would hang. Local.
 */
void em_start_without_threads(char **argv);

/* The launchers of the MPI that is linked, for example "mpirun, srun --mpi=pmix". Local. */
const char *em_launchers(void);

/* Refuses limits (ulimit -n, -v) in which MPI would fail in many lines, or hang. Local. Errors:
 * EM_EUSAGE. */
em_status em_check_limits(void);
