/*
 * A rollback journal of an HDF5 file: what must be written back to restore the file, which is all
 * of it but the values of its datasets. It is small compared with the draws of a run. It suffices
 * as long as datasets are only truncated, and additions go to new parts of the file. Local, by one
 * rank.
 */
#pragma once

#include "emass/status.h"

/* Writes the journal of a flushed file to `journal`, a new file, with a text that identifies the
 * file. Both are on the disk on return. Errors: EM_EIO, EM_EMEMORY; then there is no journal. */
em_status em_rollback_journal_keep(const char *file, const char *identity, const char *journal);

/*
 * Restores the file; a restore that was interrupted can be repeated. identity NULL: any file.
 * Errors: EM_EDATA when the journal is incomplete or of another file, and the file is unchanged;
 * EM_EIO.
 */
em_status em_rollback_journal_apply(const char *journal, const char *identity, const char *file);
