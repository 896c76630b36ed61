#include "data/design/level_order.h"

#include "base/text.h"
#include "base/text/json.h"
#include "data/design/coding.h"
#include "data/table/truth.h"

#include <math.h>
#include <string.h>

static em_status fail(const char *column, const char *found, const char *expected)
{
    return em_fail(EM_ECONFIG, "model.levels%s%s: found %s, expected %s", *column ? "." : "",
                   *column ? em_excerpt_of(column).text : "", found, expected);
}

static em_status check_list(const char *column, const json_t *list)
{
    const json_t *level;
    size_t i;

    if (!json_is_array(list) || json_array_size(list) == 0)
        return fail(column, em_json_excerpt(list).text,
                    "a list of levels, the reference level first");
    json_array_foreach(list, i, level)
    {
        if (!json_is_string(level) && !json_is_number(level) && !json_is_boolean(level))
            return fail(column, em_json_excerpt(level).text, "a level: text or a number");
    }
    return EM_OK;
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
        status = fail("", *out ? em_json_excerpt(*out).text : why.text, "{column: [level, ...]}");
    else
        json_object_foreach(*out, column, list) status = status ? status : check_list(column, list);
    if (status) {
        json_decref(*out);
        *out = NULL;
    }
    return status;
}

/* ---------------------------------------------------------------- the order */

/* The value that stands for a level in column j; infinity if no row has the level. */
static double value_of(const em_table *table, int64_t j, const json_t *level)
{
    const em_levels *texts = table->text && json_is_string(level) ? &table->text[j] : NULL;
    double number;

    for (int64_t i = 0; texts && i < texts->count; i++)
        if (strcmp(texts->text[i], json_string_value(level)) == 0)
            return em_level_value(i);
    return em_json_finite(level, &number) ? number : INFINITY;
}

/* 1 or 0 if the option's text is a truth value; -1: it is none. */
static int truth_of(const json_t *level)
{
    const double number = json_number_value(level);

    if (json_is_string(level))
        return em_truth_of(json_string_value(level));
    return json_is_true(level) || (json_is_number(level) && number == 1)    ? 1
           : json_is_false(level) || (json_is_number(level) && number == 0) ? 0
                                                                            : -1;
}

/* The index of the level that the option names, also if the same truth value is written
 * differently; n: there is none. */
static int64_t index_of(const em_table *table, int64_t j, const json_t *one, int64_t n,
                        const double *level)
{
    const double value = value_of(table, j, one);
    const int truth = truth_of(one);
    int64_t i = 0;

    while (i < n && em_level_compare(level[i], value) != 0)
        i++;
    if (i < n || truth < 0)
        return i;
    for (i = 0; i < n && em_truth_of_value(table, j, level[i]) != truth;)
        i++;
    return i;
}

/* Moves the levels of the list to the front in its order; *n_found: how many there are. */
static em_status sort(const em_table *table, int64_t j, const json_t *list, int64_t n,
                      double *level, int64_t *n_found)
{
    const json_t *one;
    size_t k;

    *n_found = 0;
    json_array_foreach(list, k, one)
    {
        const int64_t i = index_of(table, j, one, n, level);
        if (i == n)
            continue;
        const double value = level[i];
        if (i < *n_found)
            return em_fail(EM_ECONFIG, "model.levels.%s: found '%s' twice, expected it once%s",
                           em_excerpt_of(table->name[j]).text, em_json_excerpt(one).text,
                           em_level_code(value) >= 0 ? "" : " (01 and 1 are one number)");
        memmove(&level[*n_found + 1], &level[*n_found], (size_t)(i - *n_found) * sizeof *level);
        level[(*n_found)++] = value;
    }
    return EM_OK;
}

/* Fails with a message about the first row with that level. Collective. */
static em_status fail_level(const em_table *table, int64_t j, double level, const json_t *list)
{
    const int64_t n_column = table->n_column;
    int64_t held = 0;
    char found[EM_LEVEL_BYTES];

    while (held < table->n_row && em_level_compare(table->value[held * n_column + j], level) != 0)
        held++;
    const int64_t row = em_table_first_row(table, held);
    em_table_print_value(table, j, level, found);
    return em_fail(EM_EDATA,
                   "%s:%lld: found level '%s' of factor %s, expected one of model.levels: %s",
                   table->path, (long long)em_table_line(table, row), em_excerpt_of(found).text,
                   em_excerpt_of(table->name[j]).text, em_json_excerpt(list).text);
}

em_status em_level_order_apply(const json_t *levels, const em_table *table, int64_t j, int64_t n,
                               double *level)
{
    int64_t n_found = n;
    const json_t *list = levels ? json_object_get(levels, table->name[j]) : NULL;
    em_status status = list ? sort(table, j, list, n, level, &n_found) : EM_OK;

    if (!status && n_found < n)
        status = fail_level(table, j, level[n_found], list);
    return status;
}
