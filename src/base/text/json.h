/* Reading and writing JSON. All Local. */
#pragma once

#include "base/text.h"
#include "emass/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The value of an option in JSON; NULL: the text is not JSON, and *why gives the place. A key that
 * an object has twice is an error. Freed by json_decref. */
json_t *em_json_load(const char *text, em_excerpt *why);

/* Reads a finite number, or a text that is one. False: it is neither. */
bool em_json_finite(const json_t *value, double *out);

/* The value, for a message; "nothing" of NULL. */
em_excerpt em_json_excerpt(const json_t *value);

/* The length of the JSON number at the begin of `text`; 0: none. *is_integer (may be NULL): it has
 * neither fraction nor exponent. */
size_t em_json_number(const char *text, bool *is_integer);

/* Reads the string that begins at the quote *at, in the one-line form of em_json_write_string, and
 * moves *at behind it. Errors: EM_EMEMORY. Freed by em_release. */
em_status em_json_read_string(const char **at, char **text);

/* Whether the string that ended before `behind` is the name of a member of an object. */
bool em_json_is_name(const char *behind);

/* Writes text as a JSON string. */
void em_json_write_string(const char *text, FILE *out);

/* Writes a finite number with the fewest digits that read back to it; integers without a point. */
void em_json_write_number(double value, FILE *out);
