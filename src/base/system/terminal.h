/*
 * The terminal that a standard stream ends at, if it does. What a rank prints goes by way of its
 * launcher, through a pipe or through a pseudo-terminal of the launcher's own: what counts is where
 * the launcher's stream ends, which is known on the node it runs on. All Local.
 */
#ifndef EM_BASE_SYSTEM_TERMINAL_H
#define EM_BASE_SYSTEM_TERMINAL_H

#include "emass/status.h"

#include <stdbool.h>
#include <stdio.h>

/* How wide the terminal is that `stream` ends at, now; 0: it ends at none. */
int em_terminal_columns(FILE *stream);

/* Whether colours help there: on a terminal that knows them, and without NO_COLOR
 * (https://no-color.org). */
bool em_terminal_colours(FILE *stream);

#define EM_COLOUR_TITLE   "\033[1m"
#define EM_COLOUR_GOOD    "\033[1;32m"
#define EM_COLOUR_WARNING "\033[1;33m"
#define EM_COLOUR_BAD     "\033[1;31m"
#define EM_COLOUR_END     "\033[0m"

/* How many columns of a terminal UTF-8 text takes: wide characters two, combining ones none. */
int em_terminal_width(const char *text);

/*
 * Prints text in lines of at most `columns`, broken between words. A broken line goes on below what
 * follows its last gap of several blanks, where that is in its first half; else a little to the
 * right of where it began, unless that was the margin. 0 columns: as it is.
 */
void em_terminal_fill(FILE *stream, int columns, const char *text);

/* Prose on its way to a stream: what is written to `words` is filled to the width of the terminal,
 * if it ends at one, and at most `widest`, when that is done. Errors: EM_EMEMORY. */
typedef struct em_prose {
    FILE *words, *stream;
    char *text;
    size_t size;
} em_prose;

em_status em_prose_begin(FILE *stream, em_prose *prose);
void em_prose_end(em_prose *prose, int widest);

#endif
