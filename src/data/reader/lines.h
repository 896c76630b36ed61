/* Lines of a text file, plain, gzipped or compressed by xz, and the numbers in them. All Local. */
#pragma once

#include "emass/status.h"

#include <locale.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdint.h>
#include <zlib.h>

/* A reader of lines. Messages name `path` and `number`; other members are private to lines.c. */
typedef struct em_lines {
    const char *path; /* borrowed */
    int64_t number;   /* of the last line, from 1 */
    gzFile file;      /* NULL: of `descriptor`, or what em_lines_block was given */
    lzma_stream *xz;  /* NULL: the file is not in xz's form */
    char *packed;     /* bytes read from a compressed file and not yet unpacked */
    int descriptor;   /* of a range; -1: none */
    char *buffer;     /* bytes begin..end are read but not yet returned */
    int64_t begin, end, capacity;
    int64_t position, limit; /* offset of `end`; the offset from which on no line begins */
    bool ended;
    locale_t locale; /* C: a decimal point is a point, whatever the program's locale */
} em_lines;

/* `path` is borrowed until em_lines_close. Errors: EM_EDATA when it cannot be opened. */
em_status em_lines_open(const char *path, em_lines **out);
void em_lines_close(em_lines **lines); /* NULL-safe. */

/* The lines of an uncompressed file that begin at the bytes first .. limit - 1; `newlines` come
 * before `first`. Errors: as em_lines_open. */
em_status em_lines_open_range(const char *path, int64_t first, int64_t limit, int64_t newlines,
                              em_lines **out);

/* The number of newlines in the bytes first .. limit - 1. Errors: EM_EDATA, EM_EIO, EM_EMEMORY. */
em_status em_lines_count(const char *path, int64_t first, int64_t limit, int64_t *count);

/* Lines that the caller passes in blocks: none before the first em_lines_block. Errors:
 * EM_EMEMORY. */
em_status em_lines_open_blocks(const char *path, em_lines **out);

/* Provides memory at *room for a block of `length` bytes, whole lines after line `number`, which
 * the caller fills. Errors: EM_EMEMORY. */
em_status em_lines_block(em_lines *lines, int64_t length, int64_t number, char **room);

/* Returns the next lines as one block, with their ends: at least `least` bytes unless fewer remain;
 * *length 0 at the end. Valid until the next call. Errors: as em_lines_next, after the whole lines
 * before. */
em_status em_lines_next_block(em_lines *lines, int64_t least, const char **block, int64_t *length);

/* Puts the last `length` bytes of that block, whole lines, back to be returned again. */
void em_lines_give_back(em_lines *lines, int64_t length);

/* Whether all lines have been returned. */
static inline bool em_lines_are_over(const em_lines *lines)
{
    return lines->ended && lines->begin == lines->end;
}

/* The offset of the next line in the (decompressed) content. */
static inline int64_t em_lines_offset(const em_lines *lines)
{
    return lines->position - (lines->end - lines->begin);
}

/* Whether the file is uncompressed; call it after the first line was read. */
static inline bool em_lines_is_plain(const em_lines *lines)
{
    return lines->file && gzdirect(lines->file) && !lines->xz;
}

/* The next line that is not blank, without its end, in *line: writable, valid until the next call;
 * NULL after the last one. Errors: EM_EDATA for unreadable, truncated or binary content and for
 * lines longer than 64 MiB; EM_EMEMORY. */
em_status em_lines_next(em_lines *lines, char **line);

/* Checks that the last line is UTF-8. Errors: EM_EDATA, which names the first byte that is not. */
em_status em_lines_check_utf8(const em_lines *lines, const char *line);

typedef enum em_token {
    EM_TOKEN_NUMBER,
    EM_TOKEN_NONFINITE, /* nan, inf, or a number too large for a double */
    EM_TOKEN_TEXT       /* anything else, also nothing */
} em_token;

/* Classifies all of `text`; *value is set for a number. */
em_token em_lines_token(const em_lines *lines, const char *text, double *value);

/* Reads `text` as a number. Any other text is an error. Errors: EM_EDATA, naming file, line,
 * `what`. */
em_status em_lines_number(const em_lines *lines, const char *text, const char *what, double *value);
