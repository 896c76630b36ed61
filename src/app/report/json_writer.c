#include "app/report/json_writer.h"

#include "base/text/json.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* The comma after a value before, and the key. */
static void begin_value(em_json *json, const char *key)
{
    if (json->last == ',')
        fputc(',', json->out);
    json->last = ',';
    if (key) {
        em_json_write_string(key, json->out);
        fputc(':', json->out);
    }
}

void em_json_open(em_json *json, const char *key, char bracket)
{
    begin_value(json, key);
    fputc(bracket, json->out);
    json->last = bracket;
}

void em_json_close(em_json *json, char bracket)
{
    fprintf(json->out, "%c\n", bracket);
    json->last = ',';
}

void em_json_text(em_json *json, const char *key, const char *text)
{
    begin_value(json, key);
    if (text)
        em_json_write_string(text, json->out);
    else
        fputs("null", json->out);
}

static void write_real(FILE *out, double value, int digits)
{
    if (!isfinite(value))
        fputs(isnan(value) ? "null" : value > 0 ? "1e999" : "-1e999", out);
    else
        fprintf(out, "%.*g", digits, value);
}

void em_json_real(em_json *json, const char *key, double value)
{
    begin_value(json, key);
    if (isfinite(value))
        em_json_write_number(value, json->out);
    else
        write_real(json->out, value, 17);
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
    return high > low ? (int)fmin(5 + fmax(log10(size / (high - low)), 0), 17) : 17;
}

void em_json_reals(em_json *json, const char *key, int64_t n, const double *x, int64_t stride)
{
    const int digits = digits_of(n, x, stride);

    em_json_open(json, key, '[');
    for (int64_t i = 0; i < n; i++) {
        begin_value(json, NULL);
        write_real(json->out, x[i * stride], digits);
    }
    em_json_close(json, ']');
}
