/* The response: one of the columns, or the label of LIBSVM. */
#include "data/table/table.h"

#include "base/memory.h"
#include "base/text.h"
#include "base/text/nearest.h"
#include "data/table/truth.h"
#include "par/message.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

em_status em_table_take_response(em_table *table, const em_table_options *options)
{
    if (table->response && options->response)
        return em_fail(EM_EDATA,
                       "%s:1: found a LIBSVM file and response '%s', expected no response: it is "
                       "the label",
                       table->path, options->response);
    em_status status = em_table_set_aside(table, options);
    if (!status && options->columns > 0 && options->columns != table->n_column)
        status = em_fail(EM_EDATA, "%s:1: found %lld features, expected columns: %lld", table->path,
                         (long long)table->n_column, (long long)options->columns);
    return status;
}

/* The first few distinct labels, in order of appearance, and the rows where they are. */
enum { MAX_LABELS = 6 };
typedef struct label {
    int64_t row;
    double value;
} label;
typedef struct label_set {
    int count;
    label found[MAX_LABELS];
} label_set;

static bool contains(const label_set *set, double value)
{
    for (int i = 0; i < set->count; i++)
        if (set->found[i].value == value)
            return true;
    return false;
}

static void offer(label_set *set, double value, int64_t row)
{
    if (set->count < MAX_LABELS && !contains(set, value))
        set->found[set->count++] = (label){row, value};
}

/* Collects the first few labels of all ranks from the first few of each. Collective. */
static em_status collect_labels(const em_table *table, label_set *set)
{
    label_set own = {0};
    EM_SCOPED label *all = NULL;
    int64_t n;

    for (int64_t i = 0; i < table->n_row && own.count < MAX_LABELS; i++)
        if (!contains(&own, table->response[i]))
            offer(&own, table->response[i], em_table_row(table, i));
    const em_status status = em_world_gather(own.count, sizeof *all, own.found, &n, &all);
    if (status)
        return status;
    qsort(all, (size_t)n, sizeof *all, em_by_first_integer);
    set->count = 0;
    for (int64_t i = 0; i < n; i++)
        offer(set, all[i].value, all[i].row);
    return EM_OK;
}

/* The first row with an unexpected label; the last row if there is none. Collective. */
static int64_t find_unexpected(const em_table *table, const label_set *expected)
{
    int64_t held = 0;

    while (held < table->n_row && contains(expected, table->response[held]))
        held++;
    const int64_t row = em_table_first_row(table, held);
    return row >= 0 ? row : table->total - 1;
}

/* Names the first row whose label is not among the expected ones. Collective. */
static em_status fail_labels(const em_table *table, const label_set *found,
                             const label_set *expected, const char *expectation)
{
    const int64_t row = find_unexpected(table, expected), line = em_table_line(table, row);
    const double value = em_table_number(table, row, table->response);
    char text[256] = "";

    if (found->count == 1)
        return em_fail(EM_EDATA, "%s:%lld: found label %g in all rows, expected %s", table->path,
                       (long long)line, value, expectation);
    for (int i = 0; i < found->count; i++)
        em_append(sizeof text, text, "%s%g", i ? ", " : "", found->found[i].value);
    return em_fail(EM_EDATA, "%s:%lld: found label %g among labels %s%s, expected %s", table->path,
                   (long long)line, value, text, found->count == MAX_LABELS ? ", ..." : "",
                   expectation);
}

/* The number of rows with the label. Collective. */
static int64_t count_label(const em_table *table, double value)
{
    int64_t count = 0;

    for (int64_t i = 0; i < table->n_row; i++)
        count += table->response[i] == value;
    em_world_sum(1, &count);
    return count;
}

/* Decides from all rows whether a label is missing, since a set keeps only the first few labels. */
static em_status check_positive(const em_table *table, double positive, const label_set *found)
{
    const label_set expected = {1, {{.value = positive}}};
    const int64_t count = count_label(table, positive);
    char text[128];

    if (count > 0 && count < table->total)
        return EM_OK;
    snprintf(text, sizeof text, "%.15g (positive) and others", positive);
    return fail_labels(table, found, &expected, text);
}

em_status em_table_binary_response(em_table *table, double positive)
{
    static const label_set zero_one = {2, {{.value = 0}, {.value = 1}}},
                           minus_plus = {2, {{.value = -1}, {.value = 1}}};
    label_set found;
    em_status status = collect_labels(table, &found);

    if (status)
        return status;
    const label_set *expected = contains(&found, -1) ? &minus_plus : &zero_one;
    if (!isnan(positive))
        status = check_positive(table, positive, &found);
    else if (found.count != 2 || !contains(expected, found.found[0].value) ||
             !contains(expected, found.found[1].value))
        status = fail_labels(table, &found, expected,
                             "0 and 1, or -1 and 1, unless `positive` names the one that is 1");
    if (status)
        return status;
    positive = isnan(positive) ? 1 : positive;
    for (int64_t i = 0; i < table->n_row; i++)
        table->response[i] = table->response[i] == positive;
    return EM_OK;
}

/* ---------------------------------------------------------------- labels that are text */

/* Finds two labels that are words for negative and positive; *code is that of the positive one. */
static bool find_yes(const em_levels *levels, int64_t *code)
{
    static const char *const pair[][2] = {{"no", "yes"}, {"n", "y"}, {"false", "true"}};

    for (size_t k = 0; k < sizeof pair / sizeof *pair && levels->count == 2; k++)
        for (*code = 0; *code < 2; ++*code)
            if (strcasecmp(levels->text[*code], pair[k][1]) == 0 &&
                strcasecmp(levels->text[1 - *code], pair[k][0]) == 0)
                return true;
    return false;
}

static em_status fail_texts(const em_table *table, const char *expected)
{
    char text[512] = "";

    for (int64_t i = 0; i < table->label.count && i < MAX_LABELS; i++)
        em_append(sizeof text, text, "%s%s", i ? ", " : "",
                  em_excerpt_of(table->label.text[i]).text);
    return em_fail(EM_EDATA, "%s:1: found labels %s%s, expected %s", table->path, text,
                   table->label.count > MAX_LABELS ? ", ..." : "", expected);
}

static em_status fail_positive(const em_table *table, const char *positive)
{
    em_nearest nearest = em_nearest_start(positive);
    char expected[256];

    for (int64_t i = 0; i < table->label.count; i++)
        em_nearest_offer(&nearest, table->label.text[i]);
    snprintf(expected, sizeof expected, "`positive`, '%s', to be one of them%s%s%s",
             em_excerpt_of(positive).text, nearest.name ? "; did you mean " : "",
             nearest.name ? em_excerpt_of(nearest.name).text : "", nearest.name ? "?" : "");
    return fail_texts(table, expected);
}

/* Whether the whole of a text is a number. */
static bool is_number(const char *text, double *number)
{
    char *end;

    *number = strtod(text, &end);
    return end > text && !*end && isfinite(*number);
}

/* The code of the label that `positive` names. Labels that are the same truth value, such as TRUE,
 * True and 1, are one name. levels->count: there is no such label. */
static int64_t code_of(const em_levels *levels, const char *positive)
{
    const int truth = em_truth_named(positive);
    int64_t code = 0;

    while (code < levels->count && strcmp(levels->text[code], positive) != 0)
        code++;
    if (code < levels->count || truth < 0 || levels->count != 2)
        return code;
    for (code = 0; code < levels->count && em_truth_of(levels->text[code]) != truth;)
        code++;
    return code;
}

/* Handles a response some of whose values are text. Collective. */
static em_status text_response(em_table *table, const char *positive)
{
    const em_levels *levels = &table->label;
    int64_t code = positive ? code_of(levels, positive) : 0, count[2];
    double number = NAN;

    if (positive && code == levels->count && !is_number(positive, &number))
        return fail_positive(table, positive);
    if (!positive && !find_yes(levels, &code))
        return fail_texts(table, "no and yes, unless `positive` names the one that is 1");
    /* The number of responses that are numbers, and of those that are that text. Collective. */
    count[0] = count[1] = 0;
    for (int64_t i = 0; i < table->n_row; i++) {
        count[0] += em_level_code(table->response[i]) < 0;
        count[1] += em_level_code(table->response[i]) == code;
    }
    em_world_sum(2, count);
    if (!positive && count[0] > 0)
        return fail_texts(table, "no numbers with them, unless `positive` names the one that is 1");
    for (int64_t i = 0; i < table->n_row; i++)
        table->response[i] = isnan(number) ? em_level_code(table->response[i]) == code
                                           : table->response[i] == number;
    count[1] = count_label(table, 1);
    return count[1] > 0 && count[1] < table->total
               ? EM_OK
               : fail_texts(table, "the one that counts as 1 in some rows and another in some");
}

em_status em_table_label_response(em_table *table, const char *positive)
{
    double number = NAN;

    if (table->label.count > 0)
        return text_response(table, positive);
    if (positive && em_truth_of(positive) >= 0)
        number = em_truth_of(positive);
    else if (positive && !is_number(positive, &number))
        return em_fail(EM_EDATA, "%s:1: found numbers as labels, expected '%s' (positive) too",
                       table->path, em_excerpt_of(positive).text);
    return em_table_binary_response(table, number);
}
