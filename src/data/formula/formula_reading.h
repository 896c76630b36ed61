/* Private to this folder: the state of the parser of formulas. All Local. */
#pragma once

#include "data/formula/formula.h"

enum { EM_NAME_BYTES = 1024 };

/* The text and the current position. */
typedef struct em_reading {
    const char *text, *at;
    const em_formula_columns *columns;
    em_formula *formula;
    int64_t n_seen;
    /* may_miss: a function may use columns that do not exist; missed: it does */
    bool may_miss, missed;
    int64_t *seen; /* [columns->n + EM_MOST_DERIVED] the order, from 1, in which columns and derived
                      columns first appear in the text; 0: not yet */
} em_reading;

/* Fails with a message: what was found at the current position, and `expected`. EM_ECONFIG. */
em_status em_reading_fail(const em_reading *r, const char *expected);

void em_reading_skip(em_reading *r);           /* blanks */
bool em_reading_accept(em_reading *r, char c); /* after blanks */

/* Whether a character may be in a name, and whether a name has other characters. */
static inline bool em_is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || (unsigned char)c >= 0x80;
}

bool em_needs_backquotes(const char *name);

/* A name, which may stand between backquotes. Errors: EM_ECONFIG. */
em_status em_reading_name(em_reading *r, char name[EM_NAME_BYTES]);

/* Finds the column `name`, which begins at `start`; -1: there is none. Errors: EM_ECONFIG for two.
 */
em_status em_reading_find(const em_reading *r, const char *name, const char *start,
                          int64_t *column);

/* Whether the column is the exposure, the offset or the weights. */
bool em_reading_is_beside(const em_formula_columns *columns, int64_t column);

void em_reading_see(em_reading *r, int64_t column);

/* Fails because there is no column `name`, which begins at `start`. The message suggests a similar
 * name; where the name is that of a function, it says what to write instead. EM_ECONFIG. */
em_status em_reading_fail_column(em_reading *r, const char *name, const char *start);

/* In formula_derived.c. Parses a function of columns such as log(x), I(x^2) or poly(x, 2), after
 * its name and parenthesis. *out is the number by which a term refers to it. Errors: EM_ECONFIG,
 * EM_EMEMORY. */
bool em_is_function(const char *name);
em_status em_reading_derived(em_reading *r, const char *name, int64_t *out);
