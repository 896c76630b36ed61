/*
 * A file with a line of JSON for each evaluation of a simulator: chain, position, outputs or the
 * reason of a failure, seconds. An evaluation that is in the file is not repeated. A run that was
 * killed continues from its checkpoint through the same positions, so only evaluations that were in
 * progress at the kill are repeated. All ranks append to one file. All Local.
 */
#pragma once

#include "model/external/evaluation_table.h"

typedef struct em_evaluation_log em_evaluation_log;

/* Reads the file, if it exists, and opens it for appending. Incomplete lines, as after a kill, are
 * skipped. Errors: EM_ECONFIG if it is not such a file or cannot be written; EM_EMEMORY. */
em_status em_evaluation_log_open(const char *path, int64_t n, int64_t n_output,
                                 em_evaluation_log **out);
void em_evaluation_log_close(em_evaluation_log **log); /* NULL-safe */

/* Whether the file had an evaluation at x, as em_evaluation_table_find. */
bool em_evaluation_log_find(const em_evaluation_log *log, em_evaluation *evaluation);

/* Appends a line. Errors: EM_EIO. */
em_status em_evaluation_log_add(em_evaluation_log *log, const em_evaluation *evaluation);
