#include "model/stan/stan_columns.h"

#include "base/memory.h"
#include "base/text.h"
#include "base/text/json.h"
#include "data/shard/redistribute_rows.h"
#include "par/message.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TABLES = 64, MOST_COLUMNS = 10000 };

/* Columns of a table, by their names as they may be printed. */
typedef struct names {
    int64_t n, capacity;
    char **name;
} names;

/* The tables of the data. They are listed first. Then all ranks together read only the columns that
 * are named, because others may have text. Then the values are used. */
typedef struct tables {
    int count;
    char *path[MOST_TABLES];
    names wanted[MOST_TABLES];
    em_table *table[MOST_TABLES];
} tables;

/* A column of a table; `table` NULL: no column. */
typedef struct column {
    const em_table *table;
    int64_t index;
} column;

/* ---------------------------------------------------------------- tables and columns */

/* The number of a table, which is added to the list if it is not in it. */
static em_status find_table(tables *all, const char *path, int *number)
{
    for (*number = 0; *number < all->count; ++*number)
        if (strcmp(all->path[*number], path) == 0)
            return EM_OK;
    if (all->count == MOST_TABLES)
        return em_fail(EM_ECONFIG, "model.data: more than %d tables", MOST_TABLES);
    em_status status = em_copy_text(path, &all->path[all->count]);
    all->count += !status;
    return status;
}

/* Adds a column to the list, unless it is in it. */
static em_status want(names *wanted, const char *name)
{
    char printable[EM_FITTED_BYTES];

    em_text_escape(name, printable, sizeof printable);
    for (int64_t i = 0; i < wanted->n; i++)
        if (strcmp(wanted->name[i], printable) == 0)
            return EM_OK;
    return em_append_copy(&wanted->name, &wanted->capacity, &wanted->n, printable);
}

/* Collective. */
static em_status read_table(const char *path, const names *wanted, em_table **out)
{
    EM_SCOPED bool *is_factor = NULL;
    em_status status = em_agree_first(em_allocate(wanted->n, sizeof *is_factor, &is_factor), 0);
    const em_fitted_columns columns = {wanted->n, (const char *const *)wanted->name, is_factor};
    const em_table_options options = {
        .data = (char *)path, .columns = INT64_MIN, .fitted = &columns};

    status = status ? status : em_table_read(&options, out);
    return status ? status : em_table_hold(*out, 0, (*out)->total);
}

/* Collective. */
static em_status read_tables(tables *all)
{
    em_status status = EM_OK;

    for (int i = 0; !status && i < all->count; i++)
        status = read_table(all->path[i], &all->wanted[i], &all->table[i]);
    return status;
}

static void release(tables *all)
{
    for (int i = 0; i < all->count; i++) {
        em_table_destroy(&all->table[i]);
        em_release_texts(all->wanted[i].n, &all->wanted[i].name);
        em_release(&all->path[i]);
    }
}

/* Finds the column that "table.csv:age" names; no column if the table is not read yet. */
static em_status find_column(tables *all, const char *text, column *out)
{
    const char *name = strrchr(text, ':') + 1;
    EM_SCOPED char *path = NULL;
    int number;
    em_status status = em_format_text(&path, "%.*s", (int)(name - 1 - text), text);

    *out = (column){NULL, 0};
    status = status ? status : find_table(all, path, &number);
    if (!status && !all->table[number])
        status = want(&all->wanted[number], name);
    else if (!status) {
        out->table = all->table[number];
        while (out->index < out->table->n_column && strcmp(out->table->name[out->index], name) != 0)
            out->index++;
        if (out->index == out->table->n_column)
            status = em_fail(EM_EDATA, "%s: found no column %s", path, em_excerpt_of(name).text);
    }
    return status;
}

static double element(const column *of, int64_t row)
{
    const em_table *table = of->table;

    if (!table->column)
        return table->value[row * table->n_column + of->index];
    for (int64_t k = table->start[row]; k < table->start[row + 1]; k++)
        if (table->column[k] == of->index)
            return table->value[k];
    return 0;
}

/* ---------------------------------------------------------------- JSON */

static const char *skip_blanks(const char *c)
{
    return c + strspn(c, " \t\r\n");
}

static em_status write_rows(const tables *all, FILE *out)
{
    for (int i = 1; i < all->count; i++)
        if (all->table[i]->n_row != all->table[0]->n_row)
            return em_fail(EM_ECONFIG,
                           "model.data: found rows, but %s has %lld rows and %s %lld: expected "
                           "tables with equal numbers of rows",
                           all->table[0]->path, (long long)all->table[0]->n_row,
                           all->table[i]->path, (long long)all->table[i]->n_row);
    if (all->count == 0)
        return em_fail(EM_ECONFIG,
                       "model.data: found rows, but no column of a table, expected at least one");
    fprintf(out, "%lld", (long long)all->table[0]->n_row);
    return EM_OK;
}

/* Writes one column as a list, and several as a list of rows. `as_matrix`: also one column. */
static em_status write_columns(int64_t n, const column *of, bool as_matrix, FILE *out)
{
    for (int64_t c = 1; c < n; c++)
        if (of[c].table->n_row != of[0].table->n_row)
            return em_fail(EM_EDATA, "%s has %lld rows, expected %lld as in %s", of[c].table->path,
                           (long long)of[c].table->n_row, (long long)of[0].table->n_row,
                           of[0].table->path);
    fputc('[', out);
    for (int64_t row = 0; row < of[0].table->n_row; row++) {
        fputs(row ? ", " : "", out);
        fputs(as_matrix ? "[" : "", out);
        for (int64_t c = 0; c < n; c++) {
            fputs(c ? ", " : "", out);
            em_json_write_number(element(&of[c], row), out);
        }
        fputs(as_matrix ? "]" : "", out);
    }
    fputc(']', out);
    return EM_OK;
}

/* Reads a list of columns, ["t.csv:a", "t.csv:b"], at *at; *n 0: it is another list. */
static em_status read_columns(tables *all, const char **at, int64_t *n, column *of)
{
    const char *c = skip_blanks(*at + 1);
    em_status status = EM_OK;

    for (*n = 0; !status && *c == '"' && *n < MOST_COLUMNS;) {
        char *text = NULL;
        status = em_json_read_string(&c, &text);
        if (!status && !strchr(text, ':')) {
            em_release(&text);
            break;
        }
        status = status ? status : find_column(all, text, &of[(*n)++]);
        em_release(&text);
        c = skip_blanks(c);
        c = *c == ',' ? skip_blanks(c + 1) : c;
    }
    if (*c != ']')
        *n = 0;
    else if (*n > 0)
        *at = c + 1;
    return status;
}

/* Writes the text at the quote *at, or the data that it names. `out` NULL: only lists the tables.
 */
static em_status write_text(tables *all, const char **at, FILE *out)
{
    const char *start = *at;
    column found = {NULL, 0};
    EM_SCOPED char *text = NULL;
    em_status status = em_json_read_string(at, &text);
    const bool is_value = !status && !em_json_is_name(*at);

    if (is_value && strchr(text, ':'))
        status = find_column(all, text, &found);
    if (!status && out && found.table)
        status = write_columns(1, &found, false, out);
    else if (!status && out && is_value && strcmp(text, "rows") == 0)
        status = write_rows(all, out);
    else if (!status && out)
        fprintf(out, "%.*s", (int)(*at - start), start);
    return status;
}

static em_status fill_in(tables *all, column *of, const char *json, FILE *out)
{
    em_status status = EM_OK;

    while (!status && *json) {
        int64_t n = 0;
        if (*json == '[')
            status = read_columns(all, &json, &n, of);
        if (!status && n > 0 && out)
            status = write_columns(n, of, true, out);
        else if (!status && n == 0 && *json == '"')
            status = write_text(all, &json, out);
        else if (!status && n == 0) {
            if (out)
                fputc(*json, out);
            json++;
        }
    }
    return status;
}

em_status em_stan_columns_fill_in(const char *json, char **out)
{
    EM_SCOPED_BY(release) tables all = {0};
    EM_SCOPED column *of = NULL;
    em_text_stream text;
    em_status status = em_text_begin(&text);

    status = status ? status : em_allocate(MOST_COLUMNS, sizeof *of, &of);
    status = status ? status : fill_in(&all, of, json, NULL);
    status = em_agree_first(status, 0);
    status = status ? status : read_tables(&all);
    status = status ? status : fill_in(&all, of, json, text.out);
    return em_text_end(&text, status, out);
}
