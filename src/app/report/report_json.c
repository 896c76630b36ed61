#include "app/report/report_json.h"

#include "base/memory.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *em_json_text(const char *text)
{
    EM_SCOPED char *copy = NULL;
    uint32_t character;

    if (!text)
        return json_null();
    if (em_copy_text(text, &copy))
        return NULL;
    for (char *c = copy; *c;) {
        const int n = em_utf8_decode(c, &character);
        if (n == 0)
            *c = '?';
        c += n > 0 ? n : 1;
    }
    return json_string(copy);
}

json_t *em_json_real(double value)
{
    const double most_exact = 0x1p53;

    if (isnan(value))
        return json_null();
    if (isinf(value))
        return json_string(value > 0 ? "Infinity" : "-Infinity");
    return value == rint(value) && fabs(value) < most_exact ? json_integer((json_int_t)value)
                                                            : json_real(value);
}

/* Significant digits by which numbers within a range are told apart: five of the range. */
static int digits_of(int64_t n, const double *x, int64_t stride)
{
    double low = INFINITY, high = -INFINITY;

    for (int64_t i = 0; i < n; i++)
        if (isfinite(x[i * stride])) {
            low = fmin(low, x[i * stride]);
            high = fmax(high, x[i * stride]);
        }
    const double size = fmax(fabs(low), fabs(high));
    return high > low ? (int)fmin(5 + fmax(log10(size / (high - low)), 0), EM_JSON_DIGITS)
                      : EM_JSON_DIGITS;
}

static json_t *array_of(int64_t n, const double *x, int64_t stride, int digits)
{
    json_t *out = json_array();
    char text[32];

    for (int64_t i = 0; out && i < n; i++) {
        snprintf(text, sizeof text, "%.*g", digits, x[i * stride]);
        em_json_add(&out, em_json_real(strtod(text, NULL)));
    }
    return out;
}

void em_json_add(json_t **array, json_t *value)
{
    if (json_array_append_new(*array, value) == 0)
        return;
    json_decref(*array);
    *array = NULL;
}

json_t *em_json_reals(int64_t n, const double *x)
{
    return array_of(n, x, 1, EM_JSON_DIGITS);
}

json_t *em_json_drawn(int64_t n, const double *x, int64_t stride)
{
    return array_of(n, x, stride, digits_of(n, x, stride));
}

em_status em_json_made(const json_t *value)
{
    return value ? EM_OK : em_fail(EM_EMEMORY, "out of memory");
}

em_status em_json_put(json_t *object, json_t *members)
{
    const em_status status =
        em_json_made(members && !json_object_update(object, members) ? object : NULL);

    json_decref(members);
    return status;
}

em_status em_json_put_as(json_t *object, const char *name, json_t *value, em_status before)
{
    if (before)
        json_decref(value);
    else if (json_object_set_new(object, name, value))
        before = em_json_made(NULL);
    return before;
}
