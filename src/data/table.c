#include "data/table.h"

#include "base/fault.h"
#include "base/memory.h"
#include "data/array.h"
#include "data/lines.h"
#include "data/readers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const em_table_format_names[] = {"auto", "libsvm", "comma", "semicolon",
                                             "tab",  "space",  NULL};
const char *const em_table_header_names[] = {"auto", "yes", "no", NULL};

em_status em_table_push(em_table *table, double value)
{
    int64_t n = table->start[table->n_row + 1];
    em_status status =
        em_array_reserve(&table->value, &table->value_capacity, n, n + 1, sizeof *table->value);

    if (status)
        return status;
    table->value[n] = value;
    table->start[table->n_row + 1] = n + 1;
    return EM_OK;
}

em_status em_table_push_sparse(em_table *table, int32_t column, double value)
{
    int64_t n = table->start[table->n_row + 1];
    em_status status =
        em_array_reserve(&table->column, &table->column_capacity, n, n + 1, sizeof *table->column);

    if (status)
        return status;
    table->column[n] = column;
    return em_table_push(table, value);
}

/* Keeps room for the ends of the rows read and of the one being read. */
static em_status begin_row(em_table *table)
{
    int64_t n = table->n_row + 1;
    em_status status = em_array_reserve(&table->start, &table->start_capacity, table->n_row ? n : 0,
                                        n + 1, sizeof *table->start);

    if (!status)
        table->start[n] = table->start[n - 1];
    return status;
}

em_status em_table_end_row(em_table *table, int64_t line)
{
    int64_t n = table->n_row;
    em_status status =
        em_array_reserve(&table->line, &table->line_capacity, n, n + 1, sizeof *table->line);

    if (status)
        return status;
    table->line[n] = line;
    table->n_row++;
    return begin_row(table);
}

em_status em_table_end_row_labelled(em_table *table, int64_t line, double label)
{
    int64_t n = table->n_row;
    em_status status = em_array_reserve(&table->response, &table->response_capacity, n, n + 1,
                                        sizeof *table->response);

    if (status)
        return status;
    table->response[n] = label;
    return em_table_end_row(table, line);
}

void em_table_destroy(em_table **out)
{
    em_table *table = *out;

    if (!table)
        return;
    for (int64_t i = 0; table->name && i < table->n_column; i++)
        em_release(&table->name[i]);
    em_release(&table->name);
    em_release(&table->path);
    em_release(&table->line);
    em_release(&table->response);
    em_release(&table->exposure);
    em_release(&table->start);
    em_release(&table->column);
    em_release(&table->value);
    em_release(out);
}

/* An empty table, about to get its first row. */
static em_status create(const char *path, em_table **out)
{
    em_status status = em_allocate(1, sizeof **out, out);

    if (!status)
        status = em_copy_text(path, &(*out)->path);
    return status ? status : begin_row(*out);
}

static em_status name_columns(em_table *table)
{
    em_status status;

    if (table->name)
        return EM_OK;
    status = em_allocate(table->n_column, sizeof *table->name, &table->name);
    for (int64_t i = 0; !status && i < table->n_column; i++)
        status = em_format_text(&table->name[i], "x%lld", (long long)i + 1);
    return status;
}

/* True when the second word of the line is like 12:... */
static bool looks_like_libsvm(const char *line)
{
    const char *word = line + strspn(line, " \t");
    size_t digits;

    word += strcspn(word, " \t");
    word += strspn(word, " \t");
    digits = strspn(word, "0123456789");
    return digits > 0 && word[digits] == ':';
}

/* The rarer a character is inside a field, the earlier it is tried as a delimiter. */
static em_table_format detect_format(const char *line)
{
    bool quoted = false, tab = false, semicolon = false, comma = false;

    if (looks_like_libsvm(line))
        return EM_TABLE_LIBSVM;
    for (; *line; line++) {
        quoted ^= *line == '"';
        tab |= !quoted && *line == '\t';
        semicolon |= !quoted && *line == ';';
        comma |= !quoted && *line == ',';
    }
    return tab         ? EM_TABLE_TAB
           : semicolon ? EM_TABLE_SEMICOLON
           : comma     ? EM_TABLE_COMMA
                       : EM_TABLE_SPACE;
}

static em_status read_lines(em_lines *lines, const em_table_options *options, em_table *table)
{
    em_table_format format = (em_table_format)options->format;
    char *line;
    em_status status = em_lines_next(lines, &line);

    if (status)
        return status;
    if (!line)
        return em_fail(EM_EDATA, "%s:1: found an empty file, expected rows of numbers",
                       lines->path);
    if (format == EM_TABLE_AUTO)
        format = detect_format(line);
    if (format == EM_TABLE_LIBSVM)
        status = em_read_libsvm(lines, line, options->columns, table);
    else
        status = em_read_delimited(lines, line, format, (em_table_header)options->header, table);
    if (!status && table->n_row == 0)
        status = em_fail(EM_EDATA, "%s:%lld: found a header alone, expected rows of numbers",
                         lines->path, (long long)lines->number);
    table->hash = em_lines_hash(lines);
    return status;
}

static em_status read_text(const em_table_options *options, em_table *table)
{
    em_lines *lines;
    em_status status = em_lines_open(options->data, &lines);

    if (status)
        return status;
    status = read_lines(lines, options, table);
    em_lines_close(&lines);
    return status;
}

em_status em_table_read(const em_table_options *options, em_table **out)
{
    const char *path = options->data, *colon = strstr(path, ":/");
    em_status status;

    if (em_fault("data"))
        return em_fail(EM_EDATA, "%s:1: found a fault injected by EMASS_FAULT, expected data",
                       path);
    status = create(path, out);
    if (!status)
        status = colon ? em_read_hdf5(path, colon, *out) : read_text(options, *out);
    if (!status)
        status = name_columns(*out);
    if (status)
        em_table_destroy(out);
    return status;
}

em_status em_table_generate(const char *name, int64_t n_row, int64_t n_column, const double *value,
                            em_table **out)
{
    em_status status = create(name, out);

    for (int64_t i = 0; !status && i < n_row; i++) {
        for (int64_t j = 0; !status && j < n_column; j++)
            status = em_table_push(*out, value[i * n_column + j]);
        if (!status)
            status = em_table_end_row(*out, i + 1);
    }
    if (!status) {
        (*out)->n_column = n_column;
        (*out)->hash = XXH64(value, (size_t)(n_row * n_column) * sizeof *value, 0);
        status = name_columns(*out);
    }
    if (status)
        em_table_destroy(out);
    return status;
}

/* The column with this name, or this number from 1. */
static em_status find_column(const em_table *table, const char *what, const char *name,
                             int64_t *column)
{
    char *end;
    long long number;

    for (*column = 0; *column < table->n_column; ++*column)
        if (strcmp(table->name[*column], name) == 0)
            return EM_OK;
    number = strtoll(name, &end, 10);
    *column = number - 1;
    if (end != name && *end == '\0' && number >= 1 && number <= table->n_column)
        return EM_OK;
    return em_fail(EM_EDATA,
                   "%s:1: found no %s column '%s', expected one of %s, ..., %s or a number "
                   "from 1 to %lld",
                   table->path, what, name, table->name[0], table->name[table->n_column - 1],
                   (long long)table->n_column);
}

/* Splits every row into one column, 0 where a sparse row has no such entry, and the rest. */
static em_status take_column(em_table *table, int64_t at, double **out)
{
    const int64_t n_left = table->n_column - 1;
    int64_t begin = 0, to = 0;
    em_status status = em_allocate(table->n_row, sizeof **out, out);

    for (int64_t i = 0; !status && i < table->n_row; i++) {
        const int64_t end = table->start[i + 1];
        for (int64_t k = begin; k < end; k++) {
            const int64_t j = table->column ? table->column[k] : k - begin;
            if (j == at) {
                (*out)[i] = table->value[k];
                continue;
            }
            if (table->column)
                table->column[to] = (int32_t)(j - (j > at));
            table->value[to++] = table->value[k];
        }
        begin = end;
        table->start[i + 1] = to;
    }
    if (status)
        return status;
    em_release(&table->name[at]);
    memmove(&table->name[at], &table->name[at + 1], (size_t)(n_left - at) * sizeof *table->name);
    table->n_column = n_left;
    return EM_OK;
}

/* The response is the last column that is left, where no other is named. */
static em_status take_columns(em_table *table, const em_table_options *options)
{
    int64_t exposure = -1, response = table->n_column - 1;
    em_status status = EM_OK;

    if (options->exposure)
        status = find_column(table, "exposure", options->exposure, &exposure);
    response -= exposure == response;
    if (!status && !table->response && options->response)
        status = find_column(table, "response", options->response, &response);
    if (!status && !table->response && (response == exposure || response < 0))
        return em_fail(EM_EDATA,
                       "%s:1: found one column for the response and the exposure, "
                       "expected two",
                       table->path);
    if (!status && !table->response) {
        status = take_column(table, response, &table->response);
        exposure -= exposure > response;
    }
    if (!status && exposure >= 0)
        status = take_column(table, exposure, &table->exposure);
    return status;
}

em_status em_table_take_response(em_table *table, const em_table_options *options)
{
    em_status status;

    if (table->response && options->response)
        return em_fail(EM_EDATA,
                       "%s:1: found a LIBSVM file and response '%s', expected no response: it is "
                       "the label",
                       table->path, options->response);
    status = take_columns(table, options);
    if (!status && options->columns >= 0 && options->columns != table->n_column)
        status = em_fail(EM_EDATA, "%s:1: found %lld features, expected columns: %lld", table->path,
                         (long long)table->n_column, (long long)options->columns);
    return status;
}

/* The first few distinct labels, in order of appearance. */
enum { MAX_LABELS = 6 };
typedef struct label_set {
    int count;
    double value[MAX_LABELS];
} label_set;

static bool contains(const label_set *set, double value)
{
    for (int i = 0; i < set->count; i++)
        if (set->value[i] == value)
            return true;
    return false;
}

static label_set collect_labels(const em_table *table)
{
    label_set set = {0, {0}};

    for (int64_t i = 0; i < table->n_row && set.count < MAX_LABELS; i++)
        if (!contains(&set, table->response[i]))
            set.value[set.count++] = table->response[i];
    return set;
}

/* Names the first row whose label is not among the `n` expected ones. */
static em_status fail_labels(const em_table *table, const label_set *found,
                             const label_set *expected, const char *expectation)
{
    char text[256] = "";
    int64_t row = 0;

    for (int i = 0; i < found->count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%g", i ? ", " : "",
                 found->value[i]);
    while (row < table->n_row - 1 && contains(expected, table->response[row]))
        row++;
    return em_fail(EM_EDATA, "%s:%lld: found label %g among labels %s%s, expected %s", table->path,
                   (long long)table->line[row], table->response[row], text,
                   found->count == MAX_LABELS ? ", ..." : "", expectation);
}

/* How many rows have the label. */
static int64_t count_label(const em_table *table, double label)
{
    int64_t count = 0;

    for (int64_t i = 0; i < table->n_row; i++)
        count += table->response[i] == label;
    return count;
}

/* Only all of the rows can say that a label is not there: a set keeps no more than the first few.
 */
static em_status check_positive(const em_table *table, double positive, const label_set *found)
{
    const label_set expected = {1, {positive}};
    const int64_t count = count_label(table, positive);
    char text[128];

    if (count > 0 && count < table->n_row)
        return EM_OK;
    snprintf(text, sizeof text, "%.15g (positive) and others", positive);
    return fail_labels(table, found, &expected, text);
}

em_status em_table_binary_response(em_table *table, double positive)
{
    static const label_set zero_one = {2, {0, 1}}, minus_plus = {2, {-1, 1}};
    const label_set found = collect_labels(table);
    const label_set *expected = contains(&found, -1) ? &minus_plus : &zero_one;
    em_status status = EM_OK;

    if (!isnan(positive))
        status = check_positive(table, positive, &found);
    else if (found.count != 2 || !contains(expected, found.value[0]) ||
             !contains(expected, found.value[1]))
        status = fail_labels(table, &found, expected,
                             "0 and 1, or -1 and 1, unless `positive` names the one that is 1");
    if (status)
        return status;
    positive = isnan(positive) ? 1 : positive;
    for (int64_t i = 0; i < table->n_row; i++)
        table->response[i] = table->response[i] == positive;
    return EM_OK;
}
