/*
 * Opening files that somebody else has put there. One rule for every path that a run reads or
 * writes: it is a regular file, and opening it neither blocks (a FIFO) nor does anything else (a
 * device).
 */
#ifndef EM_BASE_FILE_H
#define EM_BASE_FILE_H

#include "emass/status.h"

#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* "a folder", "a FIFO", "a device", ... of a file's mode. Local. */
const char *em_file_kind(mode_t mode);

/*
 * Opens a regular file as open(2) does, without blocking; not across exec(). Links are followed
 * unless O_NOFOLLOW is among the flags; with O_CREAT, anybody may read and write it as far as the
 * umask allows. Local. Errors: EM_EDATA where there is none, or something else, or it may not be
 * opened; EM_EIO when the system fails.
 */
em_status em_file_open(const char *path, int flags, int *descriptor);

/* Fails where em_file_open for reading would: before a library opens the path by its name. Local.
 */
em_status em_file_check(const char *path);

/*
 * Exactly `n` bytes of an open file from the place `at` on, however many calls that takes; `name`
 * is what messages call it. Local. Errors: EM_EIO, also where the file ends before them.
 */
em_status em_file_read_at(int descriptor, const char *name, off_t at, void *bytes, size_t n);
em_status em_file_write_at(int descriptor, const char *name, off_t at, const void *bytes, size_t n);

/* The length of the folder's part of a path, with its slash. Local. */
size_t em_file_folder_length(const char *path);

/* Whether there can be a new file of that path, by its folder. Local. Errors: EM_EUSAGE, naming
 * both; EM_EMEMORY. */
em_status em_file_check_folder(const char *path);

/* Where the links of a path lead, as far as there are any; there need be nothing. A fresh string
 * (em_release). Local. Errors: EM_EUSAGE, they go on and on; EM_EMEMORY. */
em_status em_file_follow(const char *path, char **target);

#endif
