/*
 * Values of the JSON document that the page of a report is drawn from, beside jansson's own. Each
 * is new, as jansson's `o` takes it, and NULL where memory is out: json_pack then returns NULL too.
 * All Local.
 */
#pragma once

#include "emass/status.h"

#include <jansson.h>

enum { EM_JSON_DIGITS = 15 }; /* of a number, at most */

json_t *em_json_text(const char *text); /* NULL: null; bytes that are not UTF-8 become '?' */

/* NaN is null, and an infinity the text "Infinity" or "-Infinity", which JavaScript's and Python's
 * conversions to numbers read. */
json_t *em_json_real(double value);

/* n numbers. */
json_t *em_json_reals(int64_t n, const double *x);

/* n numbers, from `x` on with that stride, with as many digits as a figure of them can show: five
 * more than the range of the finite ones takes. */
json_t *em_json_drawn(int64_t n, const double *x, int64_t stride);

/* Errors: EM_EMEMORY where there is no value. */
em_status em_json_made(const json_t *value);

/* Adds the members of `members`, or a value as one of that name unless `before` is an error, which
 * is returned then. Both take what they are given. Errors: EM_EMEMORY. */
em_status em_json_put(json_t *object, json_t *members);
em_status em_json_put_as(json_t *object, const char *name, json_t *value, em_status before);
