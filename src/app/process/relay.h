/* Copies what a launcher writes to standard output. A launcher does not say that it could not write
 * what ranks print, as on a full disk. */
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

/* In the launcher, before it runs: its standard output is the pipe. Local. */
void em_relay_use(const em_relay *relay);

/* Copies, once the launcher has been started, in a thread that no signal reaches. Local. */
void em_relay_start(em_relay *relay);

/* Waits until all is copied, if that has begun. Local. Errors: EM_EIO if some could not be written.
 */
em_status em_relay_finish(em_relay *relay);
