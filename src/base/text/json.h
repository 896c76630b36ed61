/* Pieces of JSON, for those who read or write it. All Local. */
#ifndef EM_BASE_TEXT_JSON_H
#define EM_BASE_TEXT_JSON_H

#include "emass/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The length of the JSON number that `text` begins with; 0: none. *is_integer (may be NULL): it has
 * neither fraction nor power. */
size_t em_json_number(const char *text, bool *is_integer);

/* The string that begins at the quote *at, as em_json_write_string writes it in one line; *at is
 * then behind it. Errors: EM_EMEMORY. Freed by em_release. */
em_status em_json_read_string(const char **at, char **text);

/* Whether a string that ends before `behind` names a member of an object. */
bool em_json_is_name(const char *behind);

/* Writes text as a JSON string. */
void em_json_write_string(const char *text, FILE *out);

/* Writes a finite number with as few digits as read back to it: an integer where it is one. */
void em_json_write_number(double value, FILE *out);

#endif
