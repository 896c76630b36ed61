#include "base/text/json.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *em_json_load(const char *text, em_excerpt *why)
{
    json_error_t error;
    json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);

    if (!value)
        *why = em_excerpt_of(error.text);
    return value;
}

bool em_json_finite(const json_t *value, double *out)
{
    const char *text = json_string_value(value);
    char rest;

    *out = json_number_value(value);
    return (json_is_number(value) || (text && sscanf(text, "%lf%c", out, &rest) == 1)) &&
           isfinite(*out);
}

em_excerpt em_json_excerpt(const json_t *value)
{
    EM_SCOPED char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
    return em_excerpt_of(text                    ? text
                         : json_is_string(value) ? json_string_value(value)
                                                 : "nothing");
}

/* The length of a part of a number such as ".25" or "e-3" at `text`. `good` becomes false if the
 * part is incomplete. */
static size_t tail(const char *text, bool *good)
{
    size_t sign = 0;

    if (*text != '.' && *text != 'e' && *text != 'E')
        return 0;
    if (*text != '.')
        sign = text[1] == '+' || text[1] == '-';
    const size_t n = strspn(text + 1 + sign, "0123456789");
    *good &= n > 0;
    return 1 + sign + n;
}

size_t em_json_number(const char *text, bool *is_integer)
{
    const size_t sign = *text == '-', whole = strspn(text + sign, "0123456789");
    size_t n = sign + whole;
    bool good = whole == 1 || (whole > 1 && text[sign] != '0');

    if (is_integer)
        *is_integer = !strchr(".eE", text[n]) || text[n] == '\0';
    if (text[n] == '.')
        n += tail(text + n, &good);
    if (text[n] == 'e' || text[n] == 'E')
        n += tail(text + n, &good);
    return good ? n : 0;
}

em_status em_json_read_string(const char **at, char **text)
{
    const char *from = *at + 1, *end = from;
    char *to;

    while (*end && *end != '"')
        end += *end == '\\' && end[1] ? 2 : 1;
    const em_status status = em_allocate(end - from + 1, 1, text);
    for (to = *text; !status && from < end; from++) {
        from += *from == '\\' && from + 1 < end;
        *to++ = *from;
    }
    *at = end + (*end == '"');
    return status;
}

bool em_json_is_name(const char *behind)
{
    return behind[strspn(behind, " \t\r\n")] == ':';
}

void em_json_write_string(const char *text, FILE *out)
{
    fputc('"', out);
    for (const char *c = text; *c; c++)
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            fprintf(out, "\\u%04x", (unsigned)*c);
        else
            fputc(*c, out);
    fputc('"', out);
}

void em_json_write_number(double value, FILE *out)
{
    char text[32];

    for (int precision = 15; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fputs(text, out);
}
