/*
 * What has to be written back to have an HDF5 file as it was: everything but the values of its
 * datasets. It is small beside the draws of a run, and enough for as long as datasets are only cut,
 * and what is added to the file is new. Local, by one rank.
 */
#ifndef EM_IO_CHECKPOINT_ROLLBACK_JOURNAL_H
#define EM_IO_CHECKPOINT_ROLLBACK_JOURNAL_H

#include "emass/status.h"

/* Keeps at `undo`, made anew, what brings the flushed file back, and a text that says what the file
 * is; both are on the disk on return. Errors: EM_EIO, EM_EMEMORY; there is then no `undo`. */
em_status em_rollback_journal_keep(const char *file, const char *identity, const char *undo);

/*
 * Brings the file back, also where this was begun before. NULL: whatever it is. Errors: EM_EDATA
 * when the `undo` is not whole, or of another file, and this one is not touched; EM_EIO.
 */
em_status em_rollback_journal_apply(const char *undo, const char *identity, const char *file);

#endif
