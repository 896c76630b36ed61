/* The terminal that shows a standard stream. The output of a rank passes through its launcher, by a
 * pipe or a pseudo-terminal, so the stream of the launcher is examined instead. Only ranks on the
 * launcher's node can do so. All Local. */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stdio.h>

/* The current width of the terminal that shows `stream`; 0: none does. */
int em_terminal_columns(FILE *stream);

/* Whether to use colours: on a terminal that supports them, and without NO_COLOR
 * (https://no-color.org). */
bool em_terminal_colours(FILE *stream);

#define EM_COLOUR_TITLE   "\033[1m"
#define EM_COLOUR_GOOD    "\033[1;32m"
#define EM_COLOUR_WARNING "\033[1;33m"
#define EM_COLOUR_BAD     "\033[1;31m"
#define EM_COLOUR_END     "\033[0m"

/* The terminal columns of a UTF-8 text: two for a wide character, none for a combining one. */
int em_terminal_width(const char *text);

/* Prints text in lines of at most `columns`, broken between words; 0: no line breaks. If the first
 * half of a line has a gap of several blanks, continuation lines begin in the column after the last
 * such gap. Otherwise they are indented a little more than the line, or not at all if the line is
 * not indented. */
void em_terminal_fill(FILE *stream, int columns, const char *text);

/* Wraps prose. Text that is written to `words` is printed to `stream` by em_prose_end, in lines of
 * at most `widest` columns, and at most the width of the terminal if one shows `stream`. Errors:
 * EM_EMEMORY. */
typedef struct em_prose {
    FILE *words, *stream;
    char *text;
    size_t size;
} em_prose;

em_status em_prose_begin(FILE *stream, em_prose *prose);
void em_prose_end(em_prose *prose, int widest);
