/* Text from outside the program: whole files, and excerpts for messages. */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Reads a whole file or pipe into a fresh string (em_release): at most `max_bytes` bytes, none of
 * them NUL. Local. Errors: EM_EUSAGE when it cannot be read, EM_EDATA when it is too long or
 * binary; EM_EMEMORY. */
em_status em_read_text_file(const char *path, int64_t max_bytes, char **text);

/* Decodes the first character of UTF-8 text: returns its length in bytes (0: invalid UTF-8) and its
 * code point. Local. */
int em_utf8_decode(const char *text, uint32_t *code);

/* The offset of the first byte that is no UTF-8, or is NUL; `length` if there is none. text[length]
 * is NUL. Local. */
size_t em_utf8_valid_length(const char *text, size_t length);

/* Whether a text ends with `end`, and is longer. Local. */
bool em_text_ends_with(const char *text, const char *end);

/* Whether all of a text is UTF-8. Local. */
bool em_is_utf8(const char *text);

/* Makes text safe to print on a terminal in one line. Valid UTF-8 stays; control characters,
 * characters that change the direction of text, invisible ones and invalid bytes become escapes:
 * \n, \x1b, \u202e. Writes as many whole characters as fit into out[bytes] and returns how many
 * bytes of `text` they took. Local. */
size_t em_text_escape(const char *text, char *out, size_t bytes);

/* Makes text safe to print, as em_text_escape does, in a fresh string. Local. Errors: EM_EMEMORY.
 * Freed by em_release. */
em_status em_text_printable(const char *text, char **out);

/* A fresh copy in valid UTF-8; invalid bytes become escapes. Local. Errors: EM_EMEMORY. Freed by
 * em_release. */
em_status em_text_valid(const char *text, char **out);

/* Appends formatted text to the string in out[bytes]; what does not fit is cut off. Local. */
void em_append(size_t bytes, char *out, const char *format, ...) EM_PRINTF(3, 4);

/* Text of a number. */
typedef struct em_number_text {
    char text[24];
} em_number_text;

/* Three significant digits, as %.3g, but 1110 and not 1.11e+03 for numbers below 1e15. Local. */
em_number_text em_three_digits(double x);

/* The same of bytes, in MB. Local. */
static inline em_number_text em_megabytes(double bytes)
{
    return em_three_digits(bytes / 1e6);
}

/* The plural ending of a noun that n counts: "" for 1, else "s". Local. */
static inline const char *em_plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* The index of a text in a list that ends with NULL; -1: it is not there. Local. */
int em_text_find(const char *text, const char *const *list);

/* The index of the first of n texts that equals an earlier one; -1: none. NULL texts are skipped.
 * Local. Errors: EM_EMEMORY. */
em_status em_text_find_twin(int64_t n, const char *const *text, int64_t *twin);

/* An excerpt of user's text, short enough to leave room in a message. */
typedef struct em_excerpt {
    char text[72];
} em_excerpt;

/* As em_text_escape, cut to 64 bytes, with "..." after a cut; blanks that are not of ASCII are
 * escaped too. Local. */
em_excerpt em_excerpt_of(const char *text);

/* Writes as much of a text as fits into out[bytes], with '-' for characters that look like it and
 * without blanks that are not of ASCII. Returns the name of the first of these characters, such as
 * U+2212 MINUS SIGN; NULL: there is none. Local. */
const char *em_text_to_ascii(const char *text, size_t bytes, char *out);

/* What messages say of text in another encoding. */
#define EM_NO_UTF8                                                                                 \
    " (the file is not UTF-8; if it is of Windows-1252: iconv -f WINDOWS-1252 -t UTF-8 FILE >NEW)"

/* Characters as they are, or escaped, one after the other. All Local. */

enum { EM_LONGEST_ESCAPE = 10 };

/* False for control characters, characters that change the direction of text or break a line, and
 * invisible characters other than joiners, which some scripts need. */
bool em_is_printable(uint32_t code);

/* Writes the character at `text` as it is or escaped; returns its length in bytes. */
int em_escape_one(const char *text, bool (*keeps)(uint32_t), char out[EM_LONGEST_ESCAPE + 1]);

/* Escapes as many whole characters as fit into out[bytes]; returns how many bytes of `text` they
 * took. */
size_t em_escape(const char *text, bool (*keeps)(uint32_t), char *out, size_t bytes);

/* Writes text between quotes; those in it are doubled. Local. */
void em_print_in_quotes(FILE *out, char quote, const char *text);

/* Writes text as a field of CSV (RFC 4180): quoted if it needs to be. Local. */
void em_print_quoted(FILE *out, const char *text);

/* Writes text for HTML and SVG, in an element or between double quotes: < > & " ' as entities. */
void em_escape_html(FILE *out, const char *text);

/* A text that is printed piece by piece to `out`. */
typedef struct em_text_stream {
    FILE *out;
    char *text;
    size_t length;
} em_text_stream;

/* Errors: EM_EMEMORY, and then `out` is NULL. Local. */
em_status em_text_begin(em_text_stream *stream);

/* Ends the text, if it was begun. *text is what was printed (em_release), or NULL if `status` is an
 * error. Returns `status` or EM_EMEMORY. Local. */
em_status em_text_end(em_text_stream *stream, em_status status, char **text);
