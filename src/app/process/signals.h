/* Handles signals: a run stops at its next planned point and writes a checkpoint. */
#pragma once

#include "emass/emass.h"

#include <stdbool.h>

/* From now on SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 only ask the run to stop; a second SIGINT ends
 * the process. To be called before MPI starts: Open MPI's launcher may hang if a rank dies while it
 * connects. Local. */
void em_signals_catch(void);

/*
 * From now on signals stop the runs of `context`, also signals that came before. NULL: no runs. A
 * run cannot stop until its model returns. So the process ends, with the status of a stopped run,
 * if the model is still not created 20 s after the signal, or if a call of the model has taken 20 s
 * and ten times as long as the longest call before. Ranks other than the first wait 2 s longer, so
 * that usually one rank alone prints the message. Local.
 */
void em_signals_hand_on(em_context *context, int rank);

/* Whether this process has been signalled. Local. */
bool em_signals_came(void);

/* To be called when the run and its model have been created. Local. */
void em_signals_run_is_made(void);

/* To be called before MPI_Finalize. If MPI_Finalize does not return within 20 s, the process ends
 * with this exit status. On a busy machine MPI_Finalize of Open MPI 4.1 hangs about once in ten
 * thousand times. Local. */
void em_signals_end_within_reason(int status);

/*
 * The last call of a process. After a signal MPICH's launcher loses the exit status of a process
 * whose standard output and error close before the process ends (MPICH 4.0 of Debian 12: always
 * with one rank, one time in eight with several). A child process keeps them open until the process
 * has ended. Does nothing under other launchers. Local.
 */
void em_signals_report_end(void);
