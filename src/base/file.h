/* Opening files of unknown origin. Every path that a run reads or writes must be a regular file;
 * opening it never blocks (as a FIFO would) and has no side effect (as a device might). */
#pragma once

#include "base/memory.h"
#include "emass/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The kind of a file by its mode, in words: "a folder", "a FIFO", "a device", ... Local. */
const char *em_file_kind(mode_t mode);

/* Whether the path is that of a folder, or of a link to one. Local. */
bool em_file_is_folder(const char *path);

/* Opens a regular file as open(2) does, without blocking; not across exec(). Links are followed
 * unless O_NOFOLLOW is among the flags. With O_CREAT the permissions are read and write for all,
 * less the umask. Local. Errors: EM_EDATA if there is no such file, it is not regular, or it may
 * not be opened; EM_EIO if the system fails. */
em_status em_file_open(const char *path, int flags, int *descriptor);

/* Closes a descriptor; -1 is none. Local. */
void em_file_close(const int *descriptor);

/* Begins the declaration of a local stream, which is closed where its scope ends; NULL is none. */
#define EM_SCOPED_FILE EM_SCOPED_BY(em_stream_close) FILE
static inline void em_stream_close(FILE *const *stream)
{
    if (*stream)
        fclose(*stream);
}

/* Fails where em_file_open for reading would fail. Call it before a library opens the path by name.
 * Local. */
em_status em_file_check(const char *path);

/* Reads or writes exactly `n` bytes of an open file at offset `at`; messages call the file `name`.
 * Local. Errors: EM_EIO, also at an early end of the file. */
em_status em_file_read_at(int descriptor, const char *name, off_t at, void *bytes, size_t n);
em_status em_file_write_at(int descriptor, const char *name, off_t at, const void *bytes, size_t n);

/* The XXH64 hash of the first `bytes` bytes of an open file. Local. Errors: as em_file_read_at;
 * EM_EMEMORY. */
em_status em_file_hash(int descriptor, const char *name, uint64_t bytes, uint64_t *hash);

/* The length of the folder's part of a path, with its slash. Local. */
size_t em_file_folder_length(const char *path);

/* That part as a new string (em_release); "." if there is none. Local. Errors: EM_EMEMORY. */
em_status em_file_folder(const char *path, char **folder);

/* Checks that the folder of a new file exists. Local. Errors: EM_EUSAGE, naming both;
 * EM_EMEMORY. */
em_status em_file_check_folder(const char *path);

/* Follows the symbolic links of a path; the target need not exist. A fresh string (em_release).
 * Local. Errors: EM_EUSAGE for a loop of links; EM_EMEMORY. */
em_status em_file_follow(const char *path, char **target);
