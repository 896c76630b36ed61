#include "app/summary/summary_table.h"

#include "base/memory.h"
#include "base/system/terminal.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

em_status em_table_begin(int64_t n_row, int64_t most_columns, em_summary_table *out)
{
    *out = (em_summary_table){.n_row = n_row};
    return em_allocate_all(EM_ARRAY(out->column, most_columns), EM_ARRAY(out->row, n_row));
}

em_status em_table_add_column(em_summary_table *table, em_digits digits, const char *name)
{
    em_column *column = &table->column[table->n_column++];

    column->digits = digits;
    return em_copy_text(name, &column->name);
}

void em_table_release(em_summary_table *table)
{
    for (int64_t j = 0; table->column && j < table->n_column; j++)
        em_release(&table->column[j].name);
    em_release_all(&table->column, &table->row);
}

/* Formats four significant digits, without an exponent if that is readable. */
static void four_digits(double x, char text[EM_TABLE_CELL])
{
    double size = fabs(x);
    int decimals = size > 0 ? 3 - (int)floor(log10(size)) : 3;

    if (size > 0 && (size < 1e-4 || size >= 1e6))
        snprintf(text, EM_TABLE_CELL, "%.3e", x);
    else
        snprintf(text, EM_TABLE_CELL, "%.*f", decimals > 0 ? decimals : 0, x + 0.0); /* no -0 */
}

void em_table_cell(const em_column *column, double x, char text[EM_TABLE_CELL])
{
    const em_digits digits = column->digits;

    if (!isfinite(x))
        snprintf(text, EM_TABLE_CELL, isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
    else if (digits == EM_DIGITS_WHOLE)
        snprintf(text, EM_TABLE_CELL, "%.0f", x);
    else if (digits == EM_DIGITS_THOUSANDTHS && x < 1e6)
        snprintf(text, EM_TABLE_CELL, "%.3f", x);
    else
        four_digits(x, text);
}

static int name_width(const em_summary_table *table)
{
    int width = 0;

    for (int64_t i = 0; i < table->n_row; i++)
        width = (int)em_most(width, em_terminal_width(table->row[i].name));
    return width;
}

static int column_width(const em_summary_table *table, int64_t j)
{
    int width = em_terminal_width(table->column[j].name);
    char text[EM_TABLE_CELL];

    for (int64_t i = 0; i < table->n_row; i++) {
        if (table->row[i].note)
            continue;
        em_table_cell(&table->column[j], table->row[i].value[j], text);
        width = (int)em_most(width, (int64_t)strlen(text));
    }
    return width;
}

/* How a table is shown. */
typedef struct table_layout {
    int name_width, columns; /* of the terminal; 0: none, and all goes side by side */
    bool colours;
} table_layout;

/* The end of the columns that fit beside each other, starting with column `first`; there is at
 * least one. */
static int64_t fitting(const em_summary_table *table, table_layout layout, int64_t first)
{
    int64_t end = first;
    int width = layout.name_width;

    while (end < table->n_column) {
        width += 2 + table->column[end].width;
        if (layout.columns > 0 && width > layout.columns && end > first)
            break;
        end++;
    }
    return end;
}

static void print_cell(const em_column *column, double x, table_layout layout, FILE *out)
{
    const bool warns = layout.colours && column->most > 0 && x > column->most;
    char text[EM_TABLE_CELL];

    em_table_cell(column, x, text);
    fprintf(out, "  %s%*s%s", warns ? EM_COLOUR_BAD : "", column->width, text,
            warns ? EM_COLOUR_END : "");
}

/* Prints columns `first` to `end` - 1. */
static void print_panel(const em_summary_table *table, table_layout layout, int64_t first,
                        int64_t end, FILE *out)
{
    fprintf(out, "%s%*s", layout.colours ? EM_COLOUR_TITLE : "", layout.name_width, "");
    for (int64_t j = first; j < end; j++)
        fprintf(out, "  %*s", table->column[j].width, table->column[j].name);
    fprintf(out, "%s\n", layout.colours ? EM_COLOUR_END : "");
    for (int64_t i = 0; i < table->n_row; i++) {
        const em_summary_row *row = &table->row[i];

        if (row->note && first > 0)
            continue;
        fprintf(out, "%s%*s", row->name, layout.name_width - em_terminal_width(row->name), "");
        if (row->note)
            fprintf(out, "  %s", row->note);
        for (int64_t j = first; !row->note && j < end; j++)
            print_cell(&table->column[j], row->value[j], layout, out);
        fputc('\n', out);
    }
}

void em_table_print(em_summary_table *table, FILE *out)
{
    const table_layout layout = {name_width(table), em_terminal_columns(out),
                                 em_terminal_colours(out)};
    int64_t end;

    for (int64_t j = 0; j < table->n_column; j++)
        table->column[j].width = column_width(table, j);
    for (int64_t first = 0; first < table->n_column; first = end) {
        end = fitting(table, layout, first);
        if (first > 0)
            fputc('\n', out);
        print_panel(table, layout, first, end, out);
    }
}

void em_table_print_csv(const em_summary_table *table, FILE *out)
{
    fputs("name", out);
    for (int64_t j = 0; j < table->n_column; j++)
        fprintf(out, ",%s", table->column[j].name);
    fputc('\n', out);
    for (int64_t i = 0; i < table->n_row; i++) {
        em_print_quoted(out, table->row[i].name);
        for (int64_t j = 0; j < table->n_column; j++) {
            const double x = table->row[i].value[j];
            fprintf(out, ",%.17g", isnan(x) ? fabs(x) : x); /* 0 / 0 has a sign, here and there */
        }
        fputc('\n', out);
    }
}

struct order {
    int64_t column;
    bool ascending;
};

static int compare_rows(const void *left, const void *right, void *context)
{
    const em_summary_row *a = left, *b = right;
    const struct order *order = context;
    double x = a->value[order->column], y = b->value[order->column];

    if (isnan(x) != isnan(y))
        return isnan(x) ? -1 : 1;
    if (x < y || x > y)
        return (x < y) == order->ascending ? -1 : 1;
    return (a->value > b->value) - (a->value < b->value);
}

void em_table_sort(em_summary_table *table, int64_t column, bool ascending)
{
    struct order order = {column, ascending};

    qsort_r(table->row, (size_t)table->n_row, sizeof *table->row, compare_rows, &order);
}

void em_worst_take(em_worst_row *w, const em_summary_row *row, double value)
{
    if (w->count++ == 0 || value > w->value) {
        w->value = value;
        w->row = row;
    }
}

em_worst_row em_find_worst_row(const em_summary_table *table, int64_t judged)
{
    em_worst_row w = {0};

    for (int64_t i = 0; i < table->n_row; i++)
        if (table->row[i].value[table->at.judged + judged] > 0)
            em_worst_take(&w, &table->row[i], table->row[i].value[table->at.judged + judged]);
    return w;
}
