/* The terminal at which a standard stream ends. The output of a rank passes through its launcher by
 * a pipe or by the launcher's pseudo-terminal. So the launcher's stream decides. It is known on the
 * launcher's node. All Local. */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stdio.h>

/* The current width of the terminal at which `stream` ends; 0: it ends at none. */
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

/* Prints text in lines of at most `columns`, broken between words. A continuation line is indented
 * to the column after the last gap of several blanks, where that is in the first half of the line;
 * otherwise a little more than the first line, or not at all if that was at the margin. 0 columns:
 * no line breaks. */
void em_terminal_fill(FILE *stream, int columns, const char *text);

/* Wraps prose: what is written to `words` is filled at the end to the width of the terminal, if
 * `stream` ends at one, and to at most `widest` columns. Errors: EM_EMEMORY. */
typedef struct em_prose {
    FILE *words, *stream;
    char *text;
    size_t size;
} em_prose;

em_status em_prose_begin(FILE *stream, em_prose *prose);
void em_prose_end(em_prose *prose, int widest);
