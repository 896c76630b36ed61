/* Text that comes from outside: whole files, and excerpts for messages. */
#ifndef EM_BASE_TEXT_H
#define EM_BASE_TEXT_H

#include "emass/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads a whole file, or what comes out of a pipe, of at most `max_bytes` bytes without NUL among
 * them into a fresh string, freed by em_release. Local. Errors: EM_EUSAGE when it cannot be read,
 * EM_EDATA when it is too long or binary; EM_EMEMORY.
 */
em_status em_read_text_file(const char *path, int64_t max_bytes, char **text);

/* The character that UTF-8 text begins with: how many bytes it has, and its code point; 0 bytes
 * where they are no valid UTF-8. Local. */
int em_utf8_decode(const char *text, uint32_t *code);

/*
 * Text as it may be shown on a terminal, in one line: valid UTF-8 as it is; control characters,
 * what changes the direction of text, what shows nothing, and bytes that are no UTF-8 as escapes:
 * \n, \x1b, \u202e. Writes as many whole characters into out[bytes] as there is room for, and
 * returns how many bytes of `text` these were. Local.
 */
size_t em_text_escape(const char *text, char *out, size_t bytes);

/* The same into a fresh string. Local. Errors: EM_EMEMORY. Freed by em_release. */
em_status em_text_printable(const char *text, char **out);

/* A fresh copy that is valid UTF-8: other bytes become escapes. Local. Errors: EM_EMEMORY. Freed by
 * em_release. */
em_status em_text_valid(const char *text, char **out);

/* The first of n texts that an earlier one is equal to, NULL ones left out; -1: none. Local.
 * Errors: EM_EMEMORY. */
em_status em_text_find_twin(int64_t n, const char *const *text, int64_t *twin);

/* A piece of user's text short enough to leave room in a message for the rest of it. */
typedef struct em_excerpt {
    char text[72];
} em_excerpt;

/* As em_text_escape, cut to 64 bytes, with "..." after a cut. Local. */
em_excerpt em_excerpt_of(const char *text);

/* Characters as they are, or escaped, one after the other. All Local. */

enum { EM_LONGEST_ESCAPE = 10 };

/* False of controls, of what changes the direction of text or breaks a line, and of what shows
 * nothing at all but for the joiners, which scripts need. */
bool em_is_printable(uint32_t code);

/* The character at `text` as it is or escaped; returns how many bytes it has there. */
int em_escape_one(const char *text, bool (*keeps)(uint32_t), char out[EM_LONGEST_ESCAPE + 1]);

/* As many whole characters as out[bytes] has room for; returns how many bytes of `text` these were.
 */
size_t em_escape(const char *text, bool (*keeps)(uint32_t), char *out, size_t bytes);

#endif
