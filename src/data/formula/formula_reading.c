#include "data/formula/formula_reading.h"

#include "base/text.h"
#include "base/text/nearest.h"

#include <string.h>

em_status em_reading_fail(const em_reading *r, const char *expected)
{
    return em_fail(EM_ECONFIG, "model.formula: found %s%s%s at character %lld, expected %s",
                   *r->at ? "'" : "the end", *r->at ? em_excerpt_of(r->at).text : "",
                   *r->at ? "'" : "", (long long)(r->at - r->text) + 1, expected);
}

void em_reading_skip(em_reading *r)
{
    r->at += strspn(r->at, " \t\r\n");
}

bool em_reading_accept(em_reading *r, char c)
{
    em_reading_skip(r);
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

/* ---------------------------------------------------------------- names */

bool em_needs_backquotes(const char *name)
{
    bool needs = *name >= '0' && *name <= '9';

    for (; *name; name++)
        needs = needs || !em_is_of_name(*name);
    return needs;
}

em_status em_reading_name(em_reading *r, char name[EM_NAME_BYTES])
{
    size_t length = 0;

    em_reading_skip(r);
    const char *from = r->at;
    if (*from == '`') {
        from++;
        while (from[length] && from[length] != '`')
            length++;
        if (length == 0 || !from[length])
            return em_reading_fail(r, "a name between backquotes");
    } else {
        while (em_is_of_name(from[length]))
            length++;
        const bool is_digit = *from >= '0' && *from <= '9';
        char advice[2 * EM_NAME_BYTES];
        if (is_digit && length < EM_NAME_BYTES) {
            snprintf(advice, sizeof advice,
                     "a column (a name that begins with a digit stands between backquotes: `%.*s`)",
                     (int)length, from);
            return em_reading_fail(r, advice);
        }
        if (length == 0 || is_digit)
            return em_reading_fail(r, *from == '(' && strchr(from, '|')
                                          ? "a column (effects that vary by group need a Stan "
                                            "program, model.name: stan, as brms makes it, or a "
                                            "model of Bambi)"
                                          : "a column");
    }
    if (length >= EM_NAME_BYTES)
        return em_reading_fail(r, "a shorter name");
    memcpy(name, from, length);
    name[length] = '\0';
    r->at = from + length + (*r->at == '`');
    return EM_OK;
}

em_status em_reading_find(const em_reading *r, const char *name, const char *start, int64_t *column)
{
    *column = -1;
    for (int64_t j = 0; j < r->columns->n; j++) {
        if (strcmp(r->columns->name[j], name) != 0)
            continue;
        if (*column >= 0)
            return em_fail(EM_ECONFIG,
                           "model.formula: found '%s' at character %lld, the name of columns %lld "
                           "and %lld of the data, expected one column of that name",
                           em_excerpt_of(name).text, (long long)(start - r->text) + 1,
                           (long long)*column + 1, (long long)j + 1);
        *column = j;
    }
    return EM_OK;
}

/* Whether the column is the exposure, the offset or the weights. */
bool em_reading_is_beside(const em_formula_columns *columns, int64_t column)
{
    for (int k = 0; columns->beside && k < EM_N_BESIDE; k++)
        if (columns->beside[k] == column)
            return true;
    return false;
}

void em_reading_see(em_reading *r, int64_t column)
{
    if (r->seen[column] == 0)
        r->seen[column] = ++r->n_seen;
}

/* Advice about a function of R that formulas do not have here. */
static const char *instead_of(const char *name)
{
    static const char *const smooth[] = {"s", "te", "ti", "t2", "gp", "mo", "me", "ar", NULL};

    if (strcmp(name, "offset") == 0)
        return "an offset is a column that model.offset names, or model.exposure of counts";
    if (strcmp(name, "as.factor") == 0 || strcmp(name, "ordered") == 0)
        return "categories are factor(NAME)";
    if (em_text_find(name, smooth) >= 0)
        return "smooth terms need a Stan program (model.name: stan), as brms makes it";
    return "give the data a column of its values";
}

/* Fails because no column has that name. The message suggests a similar name, or any name. */
em_status em_reading_fail_column(em_reading *r, const char *name, const char *start)
{
    const long long character = start - r->text + 1;
    const char *such = r->columns->n > 0 ? r->columns->name[0] : NULL;
    em_nearest nearest = em_nearest_start(name);

    for (int64_t j = 0; j < r->columns->n; j++)
        if (em_needs_backquotes(r->columns->name[j]) &&
            strncmp(r->columns->name[j], name, strlen(name)) == 0)
            return em_fail(EM_ECONFIG,
                           "model.formula: found '%s' at character %lld, expected a column of the "
                           "data; did you mean `%s`, between backquotes?",
                           em_excerpt_of(name).text, character,
                           em_excerpt_of(r->columns->name[j]).text);
    if (em_reading_accept(r, '('))
        return em_fail(EM_ECONFIG,
                       "model.formula: found the function '%s' at character %lld, expected a "
                       "column of the data, factor(), log(), exp(), sqrt(), I() or poly(): %s",
                       em_excerpt_of(name).text, character, instead_of(name));
    for (int64_t j = 0; j < r->columns->n; j++)
        em_nearest_offer(&nearest, r->columns->name[j]);
    such = nearest.name ? nearest.name : such;
    const bool is_utf8 = em_names_are_utf8(r->columns->n, r->columns->name);
    return em_fail(
        EM_ECONFIG,
        "model.formula: found '%s' at character %lld, expected a column of the data%s%s%s%s%s",
        em_excerpt_of(name).text, character,
        nearest.name ? "; did you mean "
        : such       ? " such as "
                     : "",
        such ? em_excerpt_of(such).text : "", nearest.name ? "?" : "",
        r->columns->unnamed ? " (the data name no columns: model.header: yes takes the first line "
                              "of a text as names)"
                            : "",
        is_utf8 ? "" : EM_NO_UTF8);
}
