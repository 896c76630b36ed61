/* Copies the standard output of a launcher and detects errors of writing it. A launcher does not
 * report that it could not write the output of its ranks, for example to a full disk. */
#pragma once

#include "emass/status.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct em_relay {
    int from, to; /* the pipe; -1: none */
    int error;    /* errno of the first write that failed; 0: none did */
    bool copies;  /* the thread has been started */
    pthread_t thread;
} em_relay;

/* Makes the pipe where standard output is a file or a device but no terminal; elsewhere `to` is -1,
 * and the launcher writes to standard output itself. Local. Errors: EM_EIO. */
em_status em_relay_open(em_relay *relay);

/* Makes the pipe the standard output. To be called in the new process, before it executes the
 * launcher. Local. */
void em_relay_use(const em_relay *relay);

/* Starts a thread that copies, with all signals blocked. To be called once the launcher has been
 * started. Local. */
void em_relay_start(em_relay *relay);

/* Waits until the thread, if there is one, has copied everything. Local. Errors: EM_EIO if some of
 * it could not be written. */
em_status em_relay_finish(em_relay *relay);
