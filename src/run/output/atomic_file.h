/*
 * A file that is there whole or not at all: written beside its place, under the lock of an output,
 * and renamed. Collective, with agreed statuses; the work is rank 0's.
 */
#ifndef EM_RUN_OUTPUT_ATOMIC_FILE_H
#define EM_RUN_OUTPUT_ATOMIC_FILE_H

#include "io/draws/writer.h"

#include <stdbool.h>

typedef struct em_atomic_file em_atomic_file;

/*
 * Takes hold of the place. Nothing is touched that is no output of emass, that an interrupted run
 * may go on with, or that is one of `input`, the files that are read. em_atomic_file_place all the
 * same. Errors: EM_EUSAGE (also where there is a file and not `overwrite`, or a run holds it),
 * EM_EIO, EM_EMEMORY.
 */
em_status em_atomic_file_take(const char *output, bool overwrite, int64_t n_input,
                              const char *const *input, em_atomic_file **out);

/* What to write meanwhile; nothing stands there. Local. */
const char *em_atomic_file_part(const em_atomic_file *whole);

/* What was written there takes its place where `status`, agreed, is EM_OK, and is removed where it
 * is not; lets go of the place, and frees. NULL-safe. Returns `status`, or errors: EM_EIO. */
em_status em_atomic_file_place(em_atomic_file **whole, em_status status);

/* The same for what a writer wrote, which is closed. */
em_status em_atomic_file_finish(em_atomic_file **whole, em_writer **writer, em_status status);

#endif
