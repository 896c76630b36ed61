/*
 * A process that stays alive and answers each line with a line, over pipes. It has its own process
 * group and a given working directory. All Local.
 */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <sys/types.h>

typedef struct em_child {
    char *const *command; /* ends with NULL; borrowed */
    const char *folder;
    pid_t id; /* 0: there is none */
    int to, from;
    bool asked_to_end; /* the last one ended by a signal that asks programs to end, as of a job */
    char *buffer;      /* what it has written */
    size_t capacity, used;
} em_child;

/* Errors: EM_ECONFIG: it cannot be started; EM_EIO. */
em_status em_child_start(em_child *child);

/* Closes the input of the process, which asks it to end, and kills it if it has not ended after
 * `patience` seconds. Returns how it ended, as waitpid does; -1: it had to be killed. */
int em_child_stop(em_child *child, double patience);

/* Frees the buffer of a stopped process. */
void em_child_release(em_child *child);

/*
 * Writes a line and waits for the answer. *answer is valid until the next call. timeout is in
 * seconds; NaN: none. Errors: EM_NONFINITE, with a message, if the process ended, wrote more than
 * one line, or took too long; it is then killed and may be started again. EM_EMEMORY.
 */
em_status em_child_ask(em_child *child, const char *line, double timeout, char **answer);
