#include "data/reader/odd_number.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST_NUMBER = 48 };

bool em_odd_comma(char *field)
{
    char *comma = strchr(field, ',');

    if (!comma || field[strspn(field, "+-0123456789,eE")] || strchr(comma + 1, ','))
        return false;
    *comma = '.';
    return true;
}

/* Whether commas separate thousands: 1,000 or -12,345.6. `out` is the number without them. */
static bool has_thousands(const char *field, char out[LONGEST_NUMBER])
{
    const char *at = field + (*field == '-' || *field == '+');
    size_t digits = strspn(at, "0123456789"), length = (size_t)(at - field) + digits;

    if (*at == '0' || digits < 1 || digits > 3 || at[digits] != ',' ||
        strlen(field) >= LONGEST_NUMBER)
        return false;
    memcpy(out, field, length);
    for (at += digits; *at == ','; at += 4, length += 3) {
        if (strspn(at + 1, "0123456789") != 3)
            return false;
        memcpy(out + length, at + 1, 3);
    }
    strcpy(out + length, at);
    return *at == '\0' || (*at == '.' && at[1 + strspn(at + 1, "0123456789")] == '\0');
}

bool em_odd_number(const em_lines *lines, const char *field, bool commas,
                   char advice[EM_ADVICE_BYTES])
{
    char plain[LONGEST_NUMBER];
    const char *character = em_text_to_ascii(field, sizeof plain, plain);
    double value;

    if (character && em_lines_token(lines, plain, &value) == EM_TOKEN_NUMBER) {
        snprintf(advice, EM_ADVICE_BYTES, "it has %s: write %s", character, plain);
        return true;
    }
    if (strlen(field) >= sizeof plain)
        return false;
    strcpy(plain, field);
    const bool is_decimal = em_odd_comma(plain);
    if (has_thousands(field, plain)) {
        snprintf(advice, EM_ADVICE_BYTES, "write %s, without separators of thousands%s", plain,
                 is_decimal && !commas ? "; with decimal: comma the comma is a decimal one" : "");
        return true;
    }
    if (is_decimal && commas)
        snprintf(advice, EM_ADVICE_BYTES,
                 "write %s: decimal: comma is for columns between semicolons, tabs or spaces",
                 plain);
    else if (is_decimal)
        strcpy(advice, "with decimal: comma that is one");
    return is_decimal;
}

/* Exchanges points and commas. */
static void exchange(char *text)
{
    for (; (text += strcspn(text, ".,")), *text; text++)
        *text = *text == '.' ? ',' : '.';
}

bool em_odd_point(const em_lines *lines, const char *field, char advice[EM_ADVICE_BYTES])
{
    char exchanged[LONGEST_NUMBER], plain[LONGEST_NUMBER];
    const char *point = strchr(field, '.');
    double value;

    if (!point || strlen(field) >= sizeof exchanged)
        return false;
    strcpy(exchanged, field);
    exchange(exchanged);
    const bool is_number = em_lines_token(lines, field, &value) == EM_TOKEN_NUMBER;
    if (has_thousands(exchanged, plain)) {
        exchange(plain);
        if (is_number)
            snprintf(advice, EM_ADVICE_BYTES, "write %s or %s", plain, exchanged);
        else
            snprintf(advice, EM_ADVICE_BYTES, "write %s, without separators of thousands", plain);
        return true;
    }
    if (is_number)
        snprintf(advice, EM_ADVICE_BYTES, "write %s", exchanged);
    return is_number;
}

em_status em_fail_advised(em_status status, const char *advice)
{
    return status && advice ? em_fail(status, "%.511s (%s)", em_error_text(), advice) : status;
}

em_status em_odd_number_read(const em_lines *lines, const char *text, const char *what,
                             double *value)
{
    char advice[EM_ADVICE_BYTES];
    const em_status status = em_lines_number(lines, text, what, value);

    return status && em_odd_number(lines, text, true, advice) ? em_fail_advised(status, advice)
                                                              : status;
}
