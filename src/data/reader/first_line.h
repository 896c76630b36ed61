/* Private to this folder: a first line of which the option `header` does not say whether it names
 * the columns. */
#pragma once

#include "data/reader/lines.h"

/* The fields of a line that may be names, and how often each occurs again in its column. */
typedef struct em_first_line {
    int64_t number; /* of the line */
    int64_t n, capacity;
    char **field;      /* [n] */
    int64_t *again;    /* [n] on this rank */
    bool counts_up;    /* 0,1,2: its numbers, three or more, count up by one */
    bool has_row_word; /* a field is no name: 1.5, -2, NA */
} em_first_line;

/* Appends a field. Local. Errors: EM_EMEMORY. */
em_status em_first_line_add(em_first_line *first, const em_lines *lines, const char *field);

/* Whether the line may be names, before other lines are known: its numbers are whole, and rise or
 * fall from column to column. Local. Errors: EM_EMEMORY. */
em_status em_first_line_may_name(em_first_line *first, bool *may);

/* Compares field j of another line with its own. Local. */
void em_first_line_see(em_first_line *first, int64_t j, const char *field);

/* Fails if it is not clear that the line is a row. Collective. Errors, agreed: EM_EDATA. */
em_status em_first_line_check(em_first_line *first, const char *path);

void em_first_line_release(em_first_line *first); /* Local. */
