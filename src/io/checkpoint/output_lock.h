/*
 * The lock of an output: at most one run uses it at a time, on any host. The lock has two parts.
 * The first is a lock of the operating system on a file beside the output. It is released when the
 * process exits. The second is a record of the owner in that file, with a counter that the owner
 * increments while it runs. The record is needed on file systems without locks, and on those whose
 * locks are not visible to other hosts. All Local, by one rank.
 */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct em_lock em_lock;

/*
 * Takes the lock of the file `path`, which is created if it does not exist. The lock is free at
 * once if its last owner released it, or if the owner exited on this host and the file system has
 * locks. If the owner is on another host, its counter is watched for half a minute: the lock is
 * free if the counter does not change. Errors: EM_EUSAGE, naming host, process, job and time of the
 * owner; EM_EDATA, the file is no lock file; EM_EIO.
 */
em_status em_lock_take(const char *path, const char *output, em_lock **out);

/* Fails if another run took the lock because it considered this run dead. Errors: EM_EIO. */
em_status em_lock_check(em_lock *lock);

/*
 * The inode of the output made by this run, or by an owner of the lock that was killed. It
 * identifies that file as an output of emass even when HDF5 cannot open it. 0: none. Errors:
 * EM_EIO.
 */
uint64_t em_lock_made(const em_lock *lock);
em_status em_lock_set_made(em_lock *lock, uint64_t inode);

/* Releases the lock and frees it; NULL-safe. Removes the file, unless `keep`: the next run needs
 * that inode. */
void em_lock_release(em_lock **lock, bool keep);
