/* Answers of programs: JSON, and the numbers in it. All Local. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Parses `text`, which it overwrites: NaN, Infinity and -Infinity, which are no JSON but which many
 * programs write, become texts that em_answer_number knows. NULL: it is no JSON. */
json_t *em_answer_parse(char *text);

/* A number; null is NaN. False: it is none. */
bool em_answer_number(const json_t *value, double *out);

/* The n numbers of a list. False: it is none, or not of n. */
bool em_answer_numbers(const json_t *list, int64_t n, double *out);
