/* Handles signals: a run stops at its next planned point and writes a checkpoint. */
#pragma once

#include "emass/emass.h"

/*
 * From now on SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 only ask the run to stop; a second SIGINT ends
 * the process. To be called before MPI starts: Open MPI's launcher may hang over a rank that dies
 * while it connects. Local.
 */
void em_signals_catch(void);

/*
 * From now on signals stop the runs of `context`; so do those that came before. NULL: none. A run
 * cannot stop while its model does not return. The process then ends by itself, with the status of
 * a stopped run, if 20 s after the signal the model is still not created, or if a call of the model
 * has taken 20 s and ten times as long as the longest call before. Ranks other than the first wait
 * 2 s longer, so that usually one rank alone prints the message. Local.
 */
void em_signals_hand_on(em_context *context, int rank);

/* To be called when the run has been created, and its model with it. Local. */
void em_signals_run_is_made(void);

/*
 * To be called before MPI_Finalize: if that does not return within 20 s, the process ends with this
 * exit status. On a busy machine MPI_Finalize of Open MPI 4.1 hangs about once in ten thousand
 * times. Local.
 */
void em_signals_end_within_reason(int status);

/*
 * The last call of a process. After a signal MPICH's launcher loses the exit status of a process
 * whose standard output and error close before the process has ended (MPICH 4.0 of Debian 12:
 * always with one rank, one time in eight with several). So a child process keeps them open until
 * then. Does nothing under other launchers. Local.
 */
void em_signals_show_the_end(void);
