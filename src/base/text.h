/* Text that comes from outside: whole files, and excerpts for messages. */
#ifndef EM_BASE_TEXT_H
#define EM_BASE_TEXT_H

#include "emass/status.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Reads a whole file, or what comes out of a pipe, of at most `max_bytes` bytes without NUL among
 * them into a fresh string, freed by em_release. Local. Errors: EM_EUSAGE when it cannot be read,
 * EM_EDATA when it is too long or binary; EM_EMEMORY.
 */
em_status em_read_text_file(const char *path, int64_t max_bytes, char **text);

/* A piece of user's text short enough to leave room in a message for the rest of it. */
typedef struct em_excerpt {
    char text[72];
} em_excerpt;

/* The first 64 bytes at most, cut between UTF-8 characters, "..." after a cut; control characters
 * become blanks. Local. */
em_excerpt em_excerpt_of(const char *text);

#endif
