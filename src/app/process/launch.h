/* The option `--ranks N`, by which a command starts its ranks. */
#pragma once

#include "emass/status.h"

#include <stdbool.h>

/* The command `emass launch` without --ranks, which is an error. Local. EM_EUSAGE. */
em_status em_launch_command(int argc, const char **argv);

/*
 * Removes `--ranks N` from the command line of a command that has this option. To be called before
 * MPI is started. If N > 1, it starts N ranks of this program, waits for them, and returns their
 * exit status in *code. If *launched is false, this process is to run the command. SIGINT, SIGTERM,
 * SIGHUP, SIGUSR1 and SIGUSR2 reach the ranks as SIGUSR1; a second SIGINT ends them. The launcher
 * is EMASS_LAUNCHER (words between blanks); else srun, inside a Slurm job whose srun supports the
 * PMI of the linked MPI; else the mpirun of that MPI. With `emass launch --ranks N -- PROGRAM`
 * the ranks run that program. Local. Errors: EM_EUSAGE, EM_EIO.
 */
em_status em_launch(int *argc, char **argv, bool *launched, int *code);

/* To be called by a rank that em_launch started, once MPI has started. Local. */
void em_launched_begin(void);

/*
 * The exit status of the process for an agreed status. Launchers report every exit status but 0 as
 * a failure, in many lines. If em_launch started the ranks, rank 0 writes the status to where
 * em_launch reads it, and all ranks then exit with 0. The statuses 0 and
 * 75 (stopped with a checkpoint) are also written to the file that EMASS_STATUS names on rank 0,
 * and a stopped run then exits with 0. The status 0 is written because a launcher may end with 0
 * without having started the ranks. Collective for a failure.
 */
int em_launched_exit(em_status status);

/*
 * To be called first in main. Unless OPENBLAS_NUM_THREADS is set, sets it to 1 and starts the
 * program again, because OpenBLAS reads it when it is loaded. Otherwise OpenBLAS would start a
 * thread for each core in every rank, each with 128 MB of address space. Under a limit on the
 * address space the process would then hang. Local.
 */
void em_start_without_threads(char **argv);

/* The launchers of the linked MPI, for example "mpirun, srun --mpi=pmix". Local. */
const char *em_launchers(void);

/* Refuses limits (ulimit -n, -v) under which MPI would fail with many lines of messages, or hang.
 * Local. Errors: EM_EUSAGE. */
em_status em_check_limits(void);
