/*
 * A trailer at the end of a file, with a hash of all bytes before it. It shows whether the file was
 * truncated or altered. Local, by one rank.
 */
#pragma once

#include "emass/status.h"

#include <stdint.h>

/* A kind of files with a trailer. magic: EMASS, two letters of the kind, the format version. */
typedef struct em_checksum_trailer {
    char magic[8];
    const char *what; /* "a checkpoint" */
} em_checksum_trailer;

/* Appends the trailer and forces all to the disk. Errors: EM_EIO, EM_EMEMORY. */
em_status em_checksum_trailer_put(const em_checksum_trailer *kind, const char *path);

/* The number of bytes before the trailer. Errors: EM_EDATA when it is missing, cut short, altered,
 * or of another version, saying which; EM_EIO when the system cannot read it. */
em_status em_checksum_trailer_check(const em_checksum_trailer *kind, const char *path,
                                    uint64_t *bytes);
