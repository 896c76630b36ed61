/* Numbers that are written as tables of other programs write them: 1,5 or 1,000 or with a minus of
 * Unicode. All Local. */
#pragma once

#include "data/reader/lines.h"

enum { EM_ADVICE_BYTES = 200 };

/* Whether a field is a number with a decimal comma, which becomes a point. */
bool em_odd_comma(char *field);

/* Whether a field would be a number in another form; `advice` says how to write it. `commas`:
 * commas separate the columns. */
bool em_odd_number(const em_lines *lines, const char *field, bool commas,
                   char advice[EM_ADVICE_BYTES]);

/* Whether a field is a number with a point although the comma is the decimal separator, as 1.000
 * and 1.000,5 are. Some programs read 1.000 as 1000 then, and others as 1. */
bool em_odd_point(const em_lines *lines, const char *field, char advice[EM_ADVICE_BYTES]);

/* Reads a number as em_lines_number does. If it fails, the message has the advice of em_odd_number
 * for columns that commas separate. Errors: EM_EDATA. */
em_status em_odd_number_read(const em_lines *lines, const char *text, const char *what,
                             double *value);

/* Adds advice to the message of a failure; NULL: none. */
em_status em_fail_advised(em_status status, const char *advice);
