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

/* The context whose runs they stop from now on, what came before included; NULL: none. Local. */
void em_signals_hand_on(em_context *context);

#endif
