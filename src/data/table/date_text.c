#include "data/table/date_text.h"

#include <stddef.h>
#include <string.h>

/* Skips least..most digits; NULL: there are fewer or more. */
static const char *digits(const char *text, size_t least, size_t most)
{
    const size_t n = text ? strspn(text, "0123456789") : 0;

    return n >= least && n <= most ? text + n : NULL;
}

static const char *character(const char *text, char wanted)
{
    return text && *text == wanted ? text + 1 : NULL;
}

/* Three numbers between two equal separators, of so many digits; returns what follows. */
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

/* 12:30:00, 12:30:00.5: what follows may be a time zone. */
static const char *after_clock(const char *text)
{
    const char *end = three(text, ":", (const size_t[3]){2, 2, 2}, 2);

    return end && *end == '.' ? digits(end + 1, 1, 18) : end;
}

static bool is_duration(const char *text)
{
    const char *from = text + strspn(text, "+-");
    const char *end = digits(from, 1, 9);

    if (end && (strncmp(end, " days", 5) == 0 || strncmp(end, " day", 4) == 0)) {
        end += end[4] == 's' ? 5 : 4;
        end += *end == ',';
        return !*end || (*end == ' ' && after_clock(end + 1 + strspn(end + 1, "+-")));
    }
    return from[0] == 'P' && from[1] && !from[1 + strspn(from + 1, "0123456789YMWDTHS.,")] &&
           from[1 + strcspn(from + 1, "0123456789")];
}

bool em_is_date_text(const char *text)
{
    const char *end = three(text, "-/.", (const size_t[3]){4, 2, 2}, 1);
    bool is_clock = false;

    end = end ? end : three(text, "/", (const size_t[3]){2, 2, 4}, 2);
    end = end ? end : three(text, ".-", (const size_t[3]){2, 2, 4}, 4);
    if (!end) {
        end = after_clock(text);
        is_clock = end != NULL;
    }
    if (end)
        return !*end || (is_clock ? strchr("Z+-", *end) != NULL : strchr("T ", *end) != NULL);
    return is_duration(text);
}
