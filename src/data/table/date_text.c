#include "data/table/date_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Skips least..most digits, and returns the text after them; NULL: there are fewer or more. */
static const char *digits(const char *text, size_t least, size_t most)
{
    const size_t n = text ? strspn(text, "0123456789") : 0;

    return n >= least && n <= most ? text + n : NULL;
}

static const char *character(const char *text, char wanted)
{
    return text && *text == wanted ? text + 1 : NULL;
}

/* Skips three numbers with so many digits between two equal separators, and returns the text after
 * them. */
static const char *three(const char *text, const char *separators, const size_t most[3],
                         size_t least_of_last)
{
    const char *end = digits(text, most[0] == 4 ? 4 : 1, most[0]);
    const char separator = end && *end && strchr(separators, *end) ? *end : '\0';

    if (!separator)
        return NULL;
    end = character(digits(end + 1, 1, most[1]), separator);
    return digits(end, least_of_last, most[2]);
}

/* Skips a time of day such as 12:30:00 or 12:30:00.5. A time zone may follow. */
static const char *after_clock(const char *text)
{
    const char *end = three(text, ":", (const size_t[3]){2, 2, 2}, 2);

    return end && *end == '.' ? digits(end + 1, 1, 18) : end;
}

/* Recognises 3 days, with or without 12:00:00 after it. */
static em_date_text duration_in_days(const char *text)
{
    const char *end = digits(text + strspn(text, "+-"), 1, 9);

    if (!end || (strncmp(end, " days", 5) != 0 && strncmp(end, " day", 4) != 0))
        return EM_NO_DATE;
    end += end[4] == 's' ? 5 : 4;
    if (!*end)
        return EM_CLOCK_TEXT;
    end += *end == ',';
    end = *end == ' ' ? after_clock(end + 1 + strspn(end + 1, "+-")) : NULL;
    return end && !*end ? EM_DATE_TEXT : EM_NO_DATE;
}

/* Whether the text is a duration such as P3DT12H or PT0.5S. Without a T it may be the name of
 * something else. */
static bool is_iso_duration(const char *text)
{
    const char *from = text + strspn(text, "+-"), *at = from + (*from == 'P');
    bool has_time = false;

    if (at == from)
        return false;
    while (*at) {
        if (!has_time && *at == 'T') {
            has_time = true;
            at++;
        }
        const size_t n = strspn(at, "0123456789.,");
        if (n == 0 || !at[n] || !strchr(has_time ? "HMS" : "YMWD", at[n]))
            return false;
        at += n + 1;
    }
    return has_time;
}

em_date_text em_date_text_of(const char *text)
{
    const char *end = three(text, "-/.", (const size_t[3]){4, 2, 2}, 1);

    end = end ? end : three(text, "/", (const size_t[3]){2, 2, 4}, 2);
    end = end ? end : three(text, ".-", (const size_t[3]){2, 2, 4}, 4);
    if (end)
        return !*end || strchr("T ", *end) ? EM_DATE_TEXT : EM_NO_DATE;
    end = after_clock(text);
    if (end)
        return !*end || strchr("Z+-", *end) ? EM_CLOCK_TEXT : EM_NO_DATE;
    return is_iso_duration(text) ? EM_DATE_TEXT : duration_in_days(text);
}
