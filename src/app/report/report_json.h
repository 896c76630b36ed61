/* Makes values for the JSON document of a report, in addition to jansson's functions. Each returns
 * a new reference, for jansson's format `o`; NULL: out of memory, and json_pack then fails too. All
 * Local. */
#pragma once

#include "emass/status.h"

#include <jansson.h>

enum { EM_JSON_DIGITS = 15 }; /* the most digits of a number */

json_t *em_json_text(const char *text); /* NULL: null; bytes that are not UTF-8 become '?' */

/* NaN is null, and an infinity the text "Infinity" or "-Infinity", which JavaScript's and Python's
 * conversions to numbers read. */
json_t *em_json_real(double value);

/* n numbers. */
json_t *em_json_reals(int64_t n, const double *x);

/* An array of the n numbers x[0], x[stride], ..., with as many digits as a figure can show: five
 * significant ones of their range. */
json_t *em_json_drawn(int64_t n, const double *x, int64_t stride);

/* Appends a value, whose reference it takes over; *array becomes NULL when memory is out. */
void em_json_add(json_t **array, json_t *value);

/* Errors: EM_EMEMORY if `value` is NULL. */
em_status em_json_made(const json_t *value);

/* Adds the members of `members` to an object, or a value under a name. If `before` is an error,
 * em_json_put_as only returns it. Both take over the reference. Errors: EM_EMEMORY. */
em_status em_json_put(json_t *object, json_t *members);
em_status em_json_put_as(json_t *object, const char *name, json_t *value, em_status before);
