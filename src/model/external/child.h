/*
 * A process that stays alive and answers lines with lines, over pipes. It is a process group of its
 * own, whose working directory is a given folder. All Local.
 */
#pragma once

#include "emass/status.h"

#include <stdint.h>
#include <sys/types.h>

typedef struct em_child {
    char *const *command; /* ends with NULL; borrowed */
    const char *folder;
    pid_t id; /* 0: there is none */
    int to, from;
    char *buffer; /* what it has written */
    size_t capacity, used;
} em_child;

/* Errors: EM_ECONFIG: it cannot be started; EM_EIO. */
em_status em_child_start(em_child *child);

/* Closes its input, which tells it to end, and kills it where it has not ended `patience` seconds
 * later. */
void em_child_stop(em_child *child, double patience);

/* Frees the buffer of one that was stopped. */
void em_child_release(em_child *child);

/*
 * Writes a line and waits for the one that answers it, which *answer borrows until the next call;
 * timeout in seconds, NaN: none. Errors: EM_NONFINITE, with a message: it ended, wrote more than
 * one line, or took too long; it is then killed, and may be started again. EM_EMEMORY.
 */
em_status em_child_ask(em_child *child, const char *line, double timeout, char **answer);
