/* What the program makes of signals: a run stops at its next planned point, with a checkpoint. */
#ifndef EM_APP_SIGNALS_H
#define EM_APP_SIGNALS_H

#include "emass/emass.h"

/*
 * From now on SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 only ask the run to stop; a second SIGINT ends
 * the process. To be called before MPI starts: Open MPI's launcher may hang over a rank that dies
 * while it connects. Local.
 */
void em_signals_catch(void);

/*
 * The context whose runs they stop from now on, what came before included; NULL: none. A run is
 * still to be made: where a model is not even made within 20 s after a signal, as of a program that
 * never ends, the process ends with the status of one that was stopped. Local.
 */
void em_signals_hand_on(em_context *context);

/* The run is made, and stops by itself. Local. */
void em_signals_run_is_made(void);

/*
 * All is done but the end of MPI, in which a process that no other waits for may itself wait for
 * ever: Open MPI 4.1 for a thread of its own that wants a lock nobody holds, once in some ten
 * thousand ends on a busy machine. After 20 s the process ends with this exit status. Local.
 */
void em_signals_end_within_reason(int status);

#endif
