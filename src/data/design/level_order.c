#include "data/design/level_order.h"

#include "base/memory.h"
#include "base/text.h"
#include "base/text/json.h"
#include "par/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static em_status fail(const char *column, const json_t *found, const char *expected)
{
    return em_fail(EM_ECONFIG, "model.levels%s%s: found %s, expected %s", *column ? "." : "",
                   *column ? em_excerpt_of(column).text : "", em_json_excerpt(found).text,
                   expected);
}

/* A level as text. */
static em_status text_of(const json_t *level, char **out)
{
    return json_is_string(level) ? em_copy_text(json_string_value(level), out)
           : json_is_integer(level)
               ? em_format_text(out, "%lld", (long long)json_integer_value(level))
               : em_format_text(out, "%.17g", json_real_value(level));
}

/* The levels of a column as texts. */
static em_status take_list(const char *column, const json_t *list, int64_t *n, char ***out)
{
    em_status status;

    *n = 0;
    *out = NULL;
    if (!json_is_array(list) || json_array_size(list) == 0)
        return fail(column, list, "a list of levels, the reference level first");
    status = em_allocate((int64_t)json_array_size(list), sizeof **out, out);
    for (size_t i = 0; !status && i < json_array_size(list); i++) {
        const json_t *level = json_array_get(list, i);
        if (!json_is_string(level) && !json_is_number(level))
            return fail(column, level, "a level: text or a number");
        status = text_of(level, &(*out)[i]);
        *n += !status;
    }
    return status;
}

static em_status check_list(const char *column, const json_t *list)
{
    char **text;
    int64_t n, twin = -1;
    em_status status = take_list(column, list, &n, &text);

    status = status ? status : em_text_find_twin(n, (const char *const *)text, &twin);
    if (!status && twin >= 0)
        status = em_fail(EM_ECONFIG, "model.levels.%s: found '%s' twice, expected it once",
                         em_excerpt_of(column).text, em_excerpt_of(text[twin]).text);
    em_release_texts(n, &text);
    return status;
}

em_status em_level_order_load(const em_table_options *options, json_t **out)
{
    em_excerpt why;
    const char *column;
    json_t *list;
    em_status status = EM_OK;

    *out = NULL;
    if (!options->levels)
        return EM_OK;
    *out = em_json_load(options->levels, &why);
    if (!json_is_object(*out))
        status = fail("", *out, "{column: [level, ...]}");
    else
        json_object_foreach(*out, column, list) status = status ? status : check_list(column, list);
    if (status) {
        json_decref(*out);
        *out = NULL;
    }
    return status;
}

/* ---------------------------------------------------------------- the order */

static bool is_level(const em_table *table, int64_t j, double level, const char *text)
{
    const int64_t code = em_level_code(level);
    char *end;

    if (code >= 0)
        return strcmp(table->text[j].text[code], text) == 0;
    const double number = strtod(text, &end);
    return end > text && !*end && number == level;
}

/* The first row with that level, named in a failure. Collective. */
static em_status fail_level(const em_table *table, int64_t j, double level, int64_t n,
                            char *const *text)
{
    const int64_t n_column = table->n_column;
    int64_t held = 0, row;
    char found[EM_LEVEL_BYTES], expected[1024] = "";

    while (held < table->n_row &&
           memcmp(&table->value[held * n_column + j], &level, sizeof level) != 0)
        held++;
    row = em_table_first_row(table, held < table->n_row ? held : -1);
    em_table_print_value(table, j, level, found);
    for (int64_t i = 0; i < n && i < 6; i++)
        em_append(sizeof expected, expected, "%s'%s'", i ? ", " : "", em_excerpt_of(text[i]).text);
    return em_fail(EM_EDATA,
                   "%s:%lld: found level '%s' of factor %s, expected one of model.levels: %s%s",
                   table->path, (long long)em_table_line(table, row), em_excerpt_of(found).text,
                   em_excerpt_of(table->name[j]).text, expected, n > 6 ? ", ..." : "");
}

/* Moves the levels to the front in the order of the texts; *n_found: how many there are. */
static void sort(const em_table *table, int64_t j, int64_t n_text, char *const *text, int64_t n,
                 double *level, int64_t *n_found)
{
    *n_found = 0;
    for (int64_t k = 0; k < n_text; k++)
        for (int64_t i = *n_found; i < n; i++) {
            const double found = level[i];
            if (!is_level(table, j, found, text[k]))
                continue;
            memmove(&level[*n_found + 1], &level[*n_found], (size_t)(i - *n_found) * sizeof *level);
            level[(*n_found)++] = found;
            break;
        }
}

em_status em_level_order_apply(const em_table_options *options, const em_table *table, int64_t j,
                               int64_t n, double *level)
{
    char **text = NULL;
    int64_t n_text = 0, n_found = n;
    json_t *levels;
    em_status status = em_level_order_load(options, &levels);
    const json_t *list = levels ? json_object_get(levels, table->name[j]) : NULL;

    if (!status && list)
        status = take_list(table->name[j], list, &n_text, &text);
    status = em_agree_first(status, 0);
    if (!status && list)
        sort(table, j, n_text, text, n, level, &n_found);
    if (!status && n_found < n)
        status = fail_level(table, j, level[n_found], n_text, text);
    em_release_texts(n_text, &text);
    json_decref(levels);
    return status;
}
