/* Parses the answers of programs: JSON and the numbers in it. All Local. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Parses `text`, which it overwrites. NaN, Infinity and -Infinity, as Python and JavaScript write
 * them, and nan, inf and -inf, as printf and the servers of UM-Bridge's Python package do, are not
 * JSON. They become strings that em_answer_number accepts. Returns NULL if the text is not JSON. */
json_t *em_answer_parse(char *text);

/* Reads a number; null is NaN. Returns false if the value is not a number. */
bool em_answer_number(const json_t *value, double *out);

/* Reads a list of n numbers. Returns false if the value is not such a list. */
bool em_answer_numbers(const json_t *list, int64_t n, double *out);
