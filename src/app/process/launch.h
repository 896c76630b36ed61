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
 * The exit status that a status stands for. Launchers call any but 0 a failure, in many lines: a
 * run that was stopped with a checkpoint ends with 0 where its own status, 75, could be written
 * into the file that EMASS_STATUS names on rank 0. Collective for EM_ESTOPPED, else Local.
 */
int em_launched_exit(em_status status);

/*
 * Sets OPENBLAS_NUM_THREADS=1 where it was not set, and starts the program anew where OpenBLAS did
 * not find that as it was loaded. The first thing that main does. Ranks are the
 * parallelism: OpenBLAS, as it is loaded, starts a thread for each core in every rank, with 128 MB
 * of address space each, and where a limit leaves no room for them the process never ends. Local.
 */
void em_start_without_threads(char **argv);

/* "mpirun, srun --mpi=pmix": what starts ranks of the MPI that is linked. Local. */
const char *em_launchers(void);

/* Refuses limits (ulimit -n, -v) in which MPI would fail in many lines, or hang. Local. Errors:
 * EM_EUSAGE. */
em_status em_check_limits(void);
