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
 * The context whose runs they stop from now on, what came before included; NULL: none. What does
 * not come to where it is asked about a signal ends the process with the status of one that was
 * stopped: a model that is not even made 20 s after it, as of a program that never ends; a call of
 * the model that has taken 20 s, and ten times what the longest before it took. Ranks but the first
 * are 2 s slower at that, so that mostly one speaks. Local.
 */
void em_signals_hand_on(em_context *context, int rank);

/* The run is made. Local. */
void em_signals_run_is_made(void);

/*
 * All is done but the end of MPI, in which a process that no other waits for may itself wait for
 * ever: Open MPI 4.1 for a thread of its own that wants a lock nobody holds, once in some ten
 * thousand ends on a busy machine. After 20 s the process ends with this exit status. Local.
 */
void em_signals_end_within_reason(int status);

/*
 * The last thing that a process does. MPICH's launcher forgets the exit status of a process that it
 * handed a signal on to, where output and errors of all are closed before it has waited for it
 * (4.0, as Debian 12 has it: always of one rank, of several one time in eight): after a signal a
 * child closes them one after the other, when the process has ended. Nothing under other launchers.
 * Local.
 */
void em_signals_show_the_end(void);
