/* Tables in text. The first line determines the format; then each rank reads a part of the rows. */
#include "base/memory.h"
#include "base/text.h"
#include "data/reader/odd_number.h"
#include "data/reader/parallel_lines.h"
#include "data/reader/readers.h"
#include "par/message.h"

#include <stdlib.h>
#include <string.h>

const char *const em_table_format_names[] = {"auto", "libsvm", "comma", "semicolon",
                                             "tab",  "space",  NULL};
const char *const em_table_header_names[] = {"auto", "yes", "no", NULL};
const char *const em_table_decimal_names[] = {"point", "comma", NULL};
const char *const em_table_na_names[] = {"error", "drop", NULL};

/* Whether the second word of the line begins with an index and a colon, as in 12:0.5. */
static bool is_libsvm(const char *line)
{
    const char *word = line + strspn(line, " \t");

    word += strcspn(word, " \t");
    word += strspn(word, " \t");
    const size_t digits = strspn(word, "0123456789");
    return digits > 0 && word[digits] == ':';
}

/* The rarer a character is inside a field, the earlier it is tried as a delimiter. */
static em_table_format detect_format(const char *line)
{
    bool quoted = false, tab = false, semicolon = false, comma = false;

    if (is_libsvm(line))
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

static const char blanks[] = " \t";

/* An index in 1..limit above `last`; `end` is where its digits must end. */
static em_status parse_index(const em_lines *lines, const char *text, int64_t last, int64_t limit,
                             int64_t *index)
{
    size_t length = strlen(text);

    /* Ten digits fit in a long long, and no valid index has more. */
    *index = length > 0 && length <= 10 && strspn(text, "0123456789") == length
                 ? strtoll(text, NULL, 10)
                 : 0;
    if (*index < 1 || *index > limit)
        return em_fail(
            EM_EDATA, "%s:%lld: found index '%s', expected an integer from 1 to %lld (columns)",
            lines->path, (long long)lines->number, em_excerpt_of(text).text, (long long)limit);
    if (*index <= last)
        return em_fail(EM_EDATA, "%s:%lld: found index %lld after %lld, expected ascending indices",
                       lines->path, (long long)lines->number, (long long)*index, (long long)last);
    return EM_OK;
}

static em_status parse_entry(const em_lines *lines, char *token, int64_t limit, int64_t *last,
                             em_table *table)
{
    char *colon = strchr(token, ':');
    int64_t index;
    double value;

    if (!colon)
        return em_fail(EM_EDATA, "%s:%lld: found '%s', expected index:value", lines->path,
                       (long long)lines->number, em_excerpt_of(token).text);
    *colon = '\0';
    em_status status = parse_index(lines, token, *last, limit, &index);
    status = status ? status : em_odd_number_read(lines, colon + 1, "a value", &value);
    if (status)
        return status;
    *last = index;
    table->n_column = em_most(table->n_column, index);
    return em_table_push_sparse(table, (int32_t)(index - 1), value);
}

/* Appends the row of a line of LIBSVM, whose text it overwrites, with indices up to `limit`. */
static em_status libsvm_row(const em_lines *lines, char *line, int64_t limit, em_table *table)
{
    char *rest, *token = strtok_r(line, blanks, &rest);
    int64_t last = 0;
    double label;
    em_status status = em_odd_number_read(lines, token, "the label", &label);

    while (!status && (token = strtok_r(NULL, blanks, &rest)))
        status = parse_entry(lines, token, limit, &last, table);
    return status ? status : em_table_end_row_labelled(table, lines->number, label);
}

/* A table that is being read. */
typedef struct reading {
    em_table *table;
    em_delimited form;
    int64_t limit; /* of LIBSVM's indices */
    bool has_header;
    em_first_line first; /* of a table that is not LIBSVM */
} reading;

/* Keeps only the columns that are used, in their order. */
static em_status choose(const em_table_options *options, reading *r)
{
    em_table *table = r->table;
    int64_t to = 0;

    r->form.n_column = table->n_column;
    em_status status = em_table_name_columns(table);
    status = status ? status : em_choice_make(options, table, &r->form.choice);
    if (status || !r->form.choice)
        return status;
    for (int64_t j = 0; j < table->n_column; j++)
        if (r->form.choice->use[j] == EM_USE_NOT)
            em_release(&table->name[j]);
        else
            table->name[to++] = table->name[j];
    table->n_column = to;
    return em_choice_mark(r->form.choice, table);
}

static bool guesses_row(const em_table_options *options, const reading *r)
{
    return options->asks_header && options->header == EM_HEADER_AUTO && !r->has_header &&
           r->form.format != EM_TABLE_LIBSVM;
}

/* Decides whether the first line, which was read as a row, may be the names of the columns. The
 * decision is made when all rows are read. */
static em_status doubt_row(const em_table_options *options, reading *r)
{
    bool may = false;
    const em_status status =
        guesses_row(options, r) ? em_first_line_may_name(&r->first, &may) : EM_OK;

    r->form.first = may ? &r->first : NULL;
    return status;
}

static em_status begin(const em_table_options *options, const em_parallel_lines_head *head,
                       reading *r)
{
    EM_SCOPED_BY(em_lines_close) em_lines *place = NULL; /* for messages */
    em_status status = EM_OK;

    if (!head->line)
        return em_fail(EM_EDATA, "%s:1: found an empty file, expected rows of numbers",
                       options->data);
    r->form.options = options;
    r->form.format = (em_table_format)options->format;
    if (r->form.format == EM_TABLE_AUTO)
        r->form.format = detect_format(head->line);
    if (options->decimal == EM_DECIMAL_COMMA &&
        (r->form.format == EM_TABLE_COMMA || r->form.format == EM_TABLE_LIBSVM))
        return em_fail(EM_EDATA,
                       "%s:%lld: found %s, expected columns between semicolons, tabs or spaces "
                       "where decimal is comma (decimal: point reads 1.5)",
                       options->data, (long long)head->number,
                       r->form.format == EM_TABLE_COMMA ? "commas between columns" : "LIBSVM");
    r->form.comment = *head->line == '#' ? head->number : 0;
    if (strncmp(head->line, "# ", 2) == 0 && options->header != EM_HEADER_YES)
        return em_fail(EM_EDATA,
                       "%s:%lld: found a first line that begins with #, expected names or numbers "
                       "(sed '/^#/d' FILE >NEW leaves comments out; header: yes takes it as names)",
                       options->data, (long long)head->number);
    r->limit = em_choice_count(options) > 0 ? em_choice_count(options) : EM_TABLE_AUTO_COLUMNS;
    if (r->form.format == EM_TABLE_LIBSVM) {
        status = em_table_make_sparse(r->table);
        return status ? status : em_table_make_labelled(r->table);
    }
    status = em_lines_open_blocks(options->data, &place);
    if (status)
        return status;
    place->number = head->number;
    status = em_delimited_begin(place, head->line, &r->form, r->table, &r->first, &r->has_header);
    status = status ? status : doubt_row(options, r);
    return status ? status : choose(options, r);
}

static em_status read_run(em_lines *lines, reading *r)
{
    char *line = NULL;
    em_status status = em_lines_next(lines, &line);

    while (!status && line) {
        status = r->form.format == EM_TABLE_LIBSVM
                     ? libsvm_row(lines, line, r->limit, r->table)
                     : em_delimited_row(lines, line, &r->form, r->table);
        status = status ? status : em_lines_next(lines, &line);
    }
    return status;
}

/* Reads runs of lines while other ranks read others. Local. */
static em_status read_runs(em_parallel_lines *input, reading *r)
{
    em_lines *lines;
    int64_t order;
    em_status status = em_parallel_lines_next(input, &lines, &order);

    while (!status && lines) {
        status = em_table_begin_run(r->table, order);
        status = status ? status : read_run(lines, r);
        status = status ? status : em_parallel_lines_next(input, &lines, &order);
    }
    return status;
}

static em_status read_rows(const em_table_options *options, const em_parallel_lines_head *head,
                           reading *r)
{
    em_parallel_lines *input;
    em_status status = em_parallel_lines_open(options->data, head, r->has_header, NULL, &input);

    if (status)
        return status;
    status = read_runs(input, r);
    const int64_t line = em_parallel_lines_line(input);
    em_parallel_lines_close(&input);
    return em_agree_first(status, line);
}

static em_status read_after(const em_table_options *options, const em_parallel_lines_head *head,
                            reading *r)
{
    em_status status = em_agree_first(begin(options, head, r), 0);
    int64_t rows[2];

    status = status ? status : read_rows(options, head, r);
    if (status)
        return status;
    r->table->row_guessed = guesses_row(options, r);
    if (r->form.format == EM_TABLE_LIBSVM) {
        double columns = (double)r->table->n_column;
        em_world_largest(1, &columns);
        r->table->n_column =
            em_choice_count(options) > 0 ? em_choice_count(options) : (int64_t)columns;
    }
    rows[0] = r->table->n_row;
    rows[1] = r->table->n_dropped;
    em_world_sum(2, rows);
    if (r->form.first && rows[0] + rows[1] > 1) { /* names alone are no table */
        status = em_first_line_check(r->form.first, options->data);
        if (status)
            return status;
    }
    if (rows[0] == 0 && rows[1] > 0)
        return em_fail(EM_EDATA,
                       "%s:%lld: found a missing value in each of %lld rows, expected one without",
                       options->data, (long long)head->number, (long long)rows[1]);
    if (rows[0] == 0)
        return em_fail(EM_EDATA, "%s:%lld: found only a header, expected rows of numbers",
                       options->data, (long long)head->number);
    return EM_OK;
}

em_status em_read_text(const em_table_options *options, em_table *table)
{
    reading r = {.table = table};
    em_parallel_lines_head head;
    em_status status = em_parallel_lines_read_head(options->data, &head);

    status = status ? status : read_after(options, &head, &r);
    em_release_owner(&r.form.choice);
    em_first_line_release(&r.first);
    em_release(&head.line);
    return status;
}
