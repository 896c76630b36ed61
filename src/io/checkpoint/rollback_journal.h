/*
 * A rollback journal of an HDF5 file: a copy of all bytes of the file but the values of its
 * datasets. Writing them back restores the file, provided that datasets were only truncated and
 * additions went to new parts of the file. The journal is small compared with the draws of a run.
 * Local, by one rank.
 */
#pragma once

#include "emass/status.h"

/* Writes the journal of a flushed file to the new file `journal`, with a text that identifies the
 * file. Both files are on the disk on return. Errors: EM_EIO, EM_EMEMORY; there is then no journal.
 */
em_status em_rollback_journal_keep(const char *file, const char *identity, const char *journal);

/*
 * Restores the file; a restore that was interrupted can be repeated. identity NULL: any file.
 * Errors: EM_EDATA if the journal is incomplete or of another file, and then the file is unchanged;
 * EM_EIO.
 */
em_status em_rollback_journal_apply(const char *journal, const char *identity, const char *file);
