/*
 * A file with a line of JSON for each evaluation of a simulator: chain, position, outputs or why it
 * failed, seconds. What the file has already is not evaluated again: a run that was killed goes on
 * from its checkpoint with the positions that it had then, so that it repeats no evaluation but
 * those that were running. All ranks append to one file. All Local.
 */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct em_evaluation_log em_evaluation_log;

/* An evaluation: of n numbers x, n_output outputs. */
typedef struct em_evaluation {
    int64_t chain;
    const double *x;
    double *output;   /* [n_output] */
    double *gradient; /* [n]; NULL: not wanted */
    char why[200];    /* it failed; "": it did not */
    double seconds;
} em_evaluation;

/* Reads what the file has, if there is one, and opens it. Lines that are cut short, as a kill
 * leaves them, are passed over. Errors: EM_ECONFIG: it is no such file, or cannot be written;
 * EM_EMEMORY.
 */
em_status em_evaluation_log_open(const char *path, int64_t n, int64_t n_output,
                                 em_evaluation_log **out);
void em_evaluation_log_close(em_evaluation_log **log); /* NULL-safe */

/* Whether the file had an evaluation at x, with a gradient if one is wanted; fills the rest in. */
bool em_evaluation_log_find(const em_evaluation_log *log, em_evaluation *evaluation);

/* Appends a line. Errors: EM_EIO. */
em_status em_evaluation_log_add(em_evaluation_log *log, const em_evaluation *evaluation);
