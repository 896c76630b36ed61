/*
 * A checkpoint file: named arrays, written and read collectively by parallel HDF5. Rows are ordered
 * by chain and not by rank, so that a run can resume on any number of ranks. A trailer after the
 * end of the HDF5 file holds a hash of all its bytes. It is verified before HDF5 opens the file,
 * because HDF5 may crash on a truncated or altered one.
 */
#pragma once

#include "emass/visitor.h"
#include "par/grid.h"

#include <stdbool.h>

typedef struct em_archive em_archive;

/* To save: creates the file, replacing an existing one; a symbolic link is replaced, not its
 * target. To restore: opens a checkpoint after checking its hash. Collective. Errors, agreed:
 * EM_EIO when the system cannot write or read it; to restore, EM_EDATA when it is missing, cut
 * short, altered, or of another format version, with a message that says which. */
em_status em_archive_open(const em_grid *grid, const char *path, bool saves, em_archive **out);

/* Verifies the hash of the file, as em_archive_open does. Local. Errors as there. */
em_status em_archive_check(const char *path);

/* The visitor that saves into a created archive, or restores from an opened one. Every name is used
 * once. A size that differs from the saved one is EM_EDATA. Borrowed from the archive. */
const em_visitor *em_archive_visitor(em_archive *archive);

/* Saves a text, or reads it into a fresh string (em_release). Collective. */
em_status em_archive_put_text(em_archive *archive, const char *name, const char *text);
em_status em_archive_get_text(em_archive *archive, const char *name, char **text);

/* Whether an opened archive has an array of that name. Collective. */
bool em_archive_has(em_archive *archive, const char *name);

/* Closes the archive. If it was created and is complete (`whole`), it gets its trailer and is on
 * the disk on return. If it is not complete, it is removed, and the error message is kept.
 * NULL-safe. Collective. Errors: EM_EIO, agreed. */
em_status em_archive_close(em_archive **archive, bool whole);
