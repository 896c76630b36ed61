/* Reads columns that are separated by commas, semicolons, tabs or blanks. A field may stand in
 * double quotes, in which "" is one quote. */
#include "base/memory.h"
#include "base/text.h"
#include "data/reader/odd_number.h"
#include "data/reader/readers.h"
#include "data/table/truth.h"

#include <stdio.h>
#include <string.h>

static const char *const delimiters[] = {[EM_TABLE_COMMA] = ",",
                                         [EM_TABLE_SEMICOLON] = ";",
                                         [EM_TABLE_TAB] = "\t",
                                         [EM_TABLE_SPACE] = " \t"};

/* The blanks that may surround a field without separating it. */
static const char *padding(const char *delimiter)
{
    return *delimiter == '\t' ? " " : " \t";
}

/* Removes the quotes of the field at `text`; returns the text after the closing quote, or NULL. */
static char *unquote(char *text)
{
    char *to = text;

    for (char *from = text + 1; *from; from++) {
        if (*from == '"' && *++from != '"') {
            *to = '\0';
            return from;
        }
        *to++ = *from;
    }
    return NULL;
}

/* Ends a field at the delimiter at `end`; *at is then the next field, or NULL. */
static void end_field(char *end, const char *delimiter, char **at)
{
    bool more = *end != '\0';

    *end = '\0';
    *at = more ? end + 1 : NULL;
    if (*at && *delimiter == ' ') { /* a run of blanks is one, and none counts at the line's end */
        *at += strspn(*at, delimiter);
        if (**at == '\0')
            *at = NULL;
    }
}

/* Cuts the next field off the line at *at. After the last field *at becomes NULL. */
static em_status next_field(const em_lines *lines, const char *delimiter, char **at, char **field)
{
    char *end, *last;

    *field = *at + strspn(*at, padding(delimiter));
    if (**field == '"') {
        end = unquote(*field);
        if (end && *delimiter != ' ')
            end += strspn(end, padding(delimiter));
        if (!end)
            return em_fail(EM_EDATA,
                           "%s:%lld: found a quote that is not closed on its line, expected "
                           "\"text\" as a field: one line a row, without line breaks in its text",
                           lines->path, (long long)lines->number);
        if (*end && !strchr(delimiter, *end))
            return em_fail(EM_EDATA, "%s:%lld: found a stray quote, expected \"text\" as a field",
                           lines->path, (long long)lines->number);
        end_field(end, delimiter, at);
        return EM_OK;
    }
    end = last = *field + strcspn(*field, delimiter);
    while (last > *field && strchr(padding(delimiter), last[-1]))
        last--;
    end_field(end, delimiter, at);
    *last = '\0';
    return EM_OK;
}

/* Appends the fields of a line that names the columns. */
static em_status parse_header(const em_lines *lines, const char *delimiter, char *line,
                              em_table *table)
{
    int64_t capacity = 0;
    em_status status = EM_OK;
    char *field;

    while (!status && line) {
        status = next_field(lines, delimiter, &line, &field);
        if (!status && !*field)
            status = em_fail(EM_EDATA, "%s:%lld: found no name for column %lld, expected one%s",
                             lines->path, (long long)lines->number, (long long)table->n_column + 1,
                             table->n_column == 0 ? " (pandas writes no row labels with "
                                                    "index=False, R none with row.names = FALSE)"
                                                  : "");
        status = status ? status : em_append_copy(&table->name, &capacity, &table->n_column, field);
    }
    table->is_named = true;
    return status;
}

/* Inspects the fields of the first line. A header has no number among its fields. `first` gets the
 * fields if they decide whether the line is a header. */
static em_status inspect_fields(const em_lines *lines, const em_delimited *form, char *line,
                                em_first_line *first, int64_t *n_field, bool *has_number)
{
    const bool keeps = form->options->asks_header && form->options->header == EM_HEADER_AUTO;
    const bool commas = form->options->decimal == EM_DECIMAL_COMMA;
    em_status status = EM_OK;
    char *field;
    double value;

    for (*n_field = 0, *has_number = false; !status && line; ++*n_field) {
        status = next_field(lines, delimiters[form->format], &line, &field);
        if (!status && keeps)
            status = em_first_line_add(first, lines, field);
        if (!status && commas)
            em_odd_comma(field);
        if (!status && em_lines_token(lines, field, &value) != EM_TOKEN_TEXT)
            *has_number = true;
    }
    return status;
}

em_status em_delimited_begin(const em_lines *lines, const char *line, const em_delimited *form,
                             em_table *table, em_first_line *first, bool *is_header)
{
    const int header = form->options->header;
    bool has_number = false;
    int64_t n_field = 0;
    EM_SCOPED char *copy = NULL;
    em_status status = em_copy_text(line, &copy);

    if (status)
        return status;
    first->number = lines->number;
    status = inspect_fields(lines, form, copy, first, &n_field, &has_number);
    *is_header = header == EM_HEADER_YES || (header == EM_HEADER_AUTO && !has_number);
    strcpy(copy, line);
    if (!status && *is_header)
        status = parse_header(lines, delimiters[form->format], copy, table);
    else if (!status)
        table->n_column = n_field;
    return status;
}

/* A column for messages: its name, or its number. */
typedef struct field_place {
    int64_t number, to; /* in the file, from 0; in the table */
} field_place;

static void say_column(const em_table *table, const field_place *place, char what[96])
{
    if (table->is_named && place->to < table->n_column)
        snprintf(what, 96, "column %s", em_excerpt_of(table->name[place->to]).text);
    else
        snprintf(what, 96, "column %lld", (long long)place->number + 1);
}

#define LEAVE_COMMENTS_OUT "sed '/^#/d' FILE >NEW leaves comments out"

/* Whether the field may belong to a comment: the file begins with lines that begin with #, and the
 * field is in one of them or in the line after them. */
static bool may_follow_comment(const em_lines *lines, const em_delimited *form)
{
    return form->comment > 0 && lines->number <= form->comment + 1;
}

/* The error message for a field that is not a number. */
static em_status fail_field(const em_lines *lines, const em_delimited *form, const em_table *table,
                            const field_place *place, char *field)
{
    const bool missing = em_is_missing(field);
    char what[96], advice[EM_ADVICE_BYTES];
    double value;

    say_column(table, place, what);
    if (em_odd_number(lines, field, form->format == EM_TABLE_COMMA, advice))
        return em_fail_advised(em_lines_number(lines, field, what, &value), advice);
    const bool is_text = em_lines_token(lines, field, &value) == EM_TOKEN_TEXT;
    return em_fail_advised(em_lines_number(lines, field, what, &value),
                           is_text && !missing && may_follow_comment(lines, form)
                               ? LEAVE_COMMENTS_OUT
                           : form->first && lines->number == form->first->number
                               ? "header: yes takes the first line as names"
                           : missing ? form->options->if_missing
                           : is_text ? form->options->if_text
                                     : NULL);
}

static em_status fail_level(const em_lines *lines, const em_table *table, const field_place *place,
                            const char *field, const char *expected)
{
    const char *quote = *field ? "'" : "";
    char what[96];

    say_column(table, place, what);
    return em_fail(EM_EDATA, "%s:%lld: found %s%s%s for %s, expected %s", lines->path,
                   (long long)lines->number, quote, *field ? em_excerpt_of(field).text : "nothing",
                   quote, what, expected);
}

/* Appends a category or a label after checking that it can be printed and stored in the output
 * file. */
static em_status push_level(const em_lines *lines, const char *field, const field_place *place,
                            em_table *table)
{
    char printable[2 * EM_LEVEL_BYTES];

    if (strlen(field) >= EM_LEVEL_BYTES)
        return fail_level(lines, table, place, field, "a shorter text");
    em_text_escape(field, printable, sizeof printable);
    if (strcmp(field, printable) != 0)
        return fail_level(lines, table, place, field,
                          em_is_utf8(field) ? "text that can be printed" : "UTF-8" EM_NO_UTF8);
    return em_table_push_text(table, place->to, field);
}

/* Whether the field looks like a number but is not one that this reader accepts, such as inf or
 * 1,5. */
static bool is_odd_number(const em_lines *lines, const char *field)
{
    char advice[EM_ADVICE_BYTES];
    double value;

    return em_lines_token(lines, field, &value) == EM_TOKEN_NONFINITE ||
           em_odd_number(lines, field, true, advice);
}

/* Reads a field of a row; *missing: the value is missing, and the row is to be dropped. */
static em_status take_field(const em_lines *lines, const em_delimited *form, char *field,
                            const field_place *place, em_table *table, bool *missing)
{
    const em_choice *choice = form->choice;
    const em_use use =
        !choice || place->number >= choice->n_column ? EM_USE_NUMBER : choice->use[place->number];
    const bool commas = form->options->decimal == EM_DECIMAL_COMMA;
    char advice[EM_ADVICE_BYTES];
    double value;

    if (use == EM_USE_NOT)
        return EM_OK;
    if (commas && use != EM_USE_LEVEL && em_odd_point(lines, field, advice))
        return em_fail_advised(
            fail_level(lines, table, place, field, "a number with a decimal comma"), advice);
    if (commas)
        em_odd_comma(field);
    if (em_lines_token(lines, field, &value) == EM_TOKEN_NUMBER)
        return em_table_push(table, value);
    if (choice && choice->drops && em_is_missing(field)) {
        *missing = true;
        return EM_OK;
    }
    if (use == EM_USE_NUMBER && em_truth_of(field) >= 0)
        return em_table_push(table, em_truth_of(field));
    if (use == EM_USE_NUMBER || (use == EM_USE_ANY && is_odd_number(lines, field)))
        return fail_field(lines, form, table, place, field);
    if (em_is_missing(field))
        return em_fail_advised(fail_level(lines, table, place, field, "a number or text"),
                               form->options->if_missing);
    return push_level(lines, field, place, table);
}

em_status em_delimited_row(const em_lines *lines, char *line, const em_delimited *form,
                           em_table *table)
{
    const char *delimiter = delimiters[form->format];
    const em_choice *choice = form->choice;
    int64_t n_field = 0, to = 0;
    bool missing = false;
    em_status status = EM_OK, cut = EM_OK;
    char *field;

    for (; !cut && line; n_field++) {
        cut = next_field(lines, delimiter, &line, &field);
        if (!cut && form->first && lines->number != form->first->number)
            em_first_line_see(form->first, n_field, field);
        if (!cut && !status && !missing)
            status = take_field(lines, form, field, &(field_place){n_field, to}, table, &missing);
        to += !choice || (n_field < choice->n_column && choice->use[n_field] != EM_USE_NOT);
    }
    const bool has_labels = !cut && table->is_named && n_field == form->n_column + 1;
    const bool other = !cut && n_field != form->n_column;
    status = status ? status : cut;
    if (other && (!status || (status == EM_EDATA && (has_labels || form->comment > 0))))
        status = em_fail(
            EM_EDATA, "%s:%lld: found %lld columns, expected %lld as in the first row%s",
            lines->path, (long long)lines->number, (long long)n_field, (long long)form->n_column,
            form->comment > 0 ? " (" LEAVE_COMMENTS_OUT ")"
            : has_labels      ? " (R writes no row labels with row.names = FALSE)"
                              : "");
    if (status || !missing)
        return status ? status : em_table_end_row(table, lines->number);
    em_table_drop_row(table);
    return EM_OK;
}
