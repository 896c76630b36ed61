/*
 * One run at a time on an output, on whatever hosts. Two things say who holds it, and are weighed
 * together: a lock of the operating system on a file beside the output, which dies with its owner;
 * and in that file a record of the owner with a counter that goes on while he lives, for file
 * systems that keep no locks, or whose locks other hosts do not see. All Local, by one rank.
 */
#ifndef EM_IO_CHECKPOINT_OUTPUT_LOCK_H
#define EM_IO_CHECKPOINT_OUTPUT_LOCK_H

#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct em_lock em_lock;

/*
 * Takes the lock that the file `path` stands for, made if it is not there. It is free at once when
 * its last owner let go of it, or died on this host where the file system keeps locks; what another
 * host left is watched first for half a minute, by its counter and not by any clock. Errors:
 * EM_EUSAGE, naming host, process, job and time of who holds it; EM_EDATA, something that is no
 * lock stands there; EM_EIO.
 */
em_status em_lock_take(const char *path, const char *output, em_lock **out);

/* Fails when somebody else has taken the lock meanwhile, who took this run for dead. Errors:
 * EM_EIO. */
em_status em_lock_check(em_lock *lock);

/*
 * The inode of the output that a holder of the lock has made and not yet let go of: this run, or
 * one that was killed. What such a file was written by is known even when nobody can read it. 0:
 * none. Errors: EM_EIO.
 */
uint64_t em_lock_made(const em_lock *lock);
em_status em_lock_set_made(em_lock *lock, uint64_t inode);

/* Lets go, removes the file unless it has to `keep` the inode for the next run, and frees; NULL-
 * safe. */
void em_lock_release(em_lock **lock, bool keep);

#endif
