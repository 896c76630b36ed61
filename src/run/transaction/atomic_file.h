/* A file that is complete or absent, never half written. It is written under another name in the
 * same folder, under the lock of an output, and then renamed. Collective, with agreed statuses;
 * rank 0 does the work. */
#pragma once

#include "io/draws/writer.h"

#include <stdbool.h>

typedef struct em_atomic_file em_atomic_file;

/*
 * Locks the output and prepares to write it. It is an error if the existing file is no output of
 * emass, if an interrupted run needs it, or if it is one of `input`, the files that are read. After
 * an error, too, em_atomic_file_publish must be called. Errors: EM_EUSAGE (also where the file
 * exists and `overwrite` is false, or a run has locked it), EM_EIO, EM_EMEMORY.
 */
em_status em_atomic_file_take(const char *output, bool overwrite, int64_t n_input,
                              const char *const *input, em_atomic_file **out);

/* The path to write to; no file exists there yet. Local. */
const char *em_atomic_file_part(const em_atomic_file *file);

/* If `status`, which is agreed, is EM_OK, renames the written file to the output; otherwise removes
 * it. Then releases the lock and frees the file. NULL-safe. Returns `status`, or errors: EM_EIO. */
em_status em_atomic_file_publish(em_atomic_file **file, em_status status);

/* Closes the writer, and then publishes the file as em_atomic_file_publish does. */
em_status em_atomic_file_finish(em_atomic_file **file, em_writer **writer, em_status status);
