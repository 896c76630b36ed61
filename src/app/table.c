#include "app/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CELL = 32 };

/* Four significant digits, without an exponent where that is readable. */
static void four_digits(double x, char text[CELL])
{
    double size = fabs(x);
    int decimals = size > 0 ? 3 - (int)floor(log10(size)) : 3;

    if (size > 0 && (size < 1e-4 || size >= 1e6))
        snprintf(text, CELL, "%.3e", x);
    else
        snprintf(text, CELL, "%.*f", decimals > 0 ? decimals : 0, x + 0.0); /* no -0 */
}

static void format_cell(em_digits digits, double x, char text[CELL])
{
    if (!isfinite(x))
        snprintf(text, CELL, isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
    else if (digits == EM_DIGITS_WHOLE)
        snprintf(text, CELL, "%.0f", x);
    else if (digits == EM_DIGITS_THOUSANDTHS && x < 1e6)
        snprintf(text, CELL, "%.3f", x);
    else
        four_digits(x, text);
}

/* How many characters UTF-8 text shows. */
static int shown(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += (*text & 0xc0) != 0x80;
    return n;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static int name_width(const em_table *table)
{
    int width = 0;

    for (int64_t i = 0; i < table->n_row; i++)
        width = larger(width, shown(table->row[i].name));
    return width;
}

static int column_width(const em_table *table, int64_t j)
{
    int width = shown(table->column[j].name);
    char text[CELL];

    for (int64_t i = 0; i < table->n_row; i++) {
        format_cell(table->column[j].digits, table->row[i].value[j], text);
        width = larger(width, (int)strlen(text));
    }
    return width;
}

void em_table_print(em_table *table, FILE *out)
{
    int width = name_width(table);
    char text[CELL];

    fprintf(out, "%*s", width, "");
    for (int64_t j = 0; j < table->n_column; j++) {
        table->column[j].width = column_width(table, j);
        fprintf(out, "  %*s", table->column[j].width, table->column[j].name);
    }
    fputc('\n', out);
    for (int64_t i = 0; i < table->n_row; i++) {
        fprintf(out, "%s%*s", table->row[i].name, width - shown(table->row[i].name), "");
        for (int64_t j = 0; j < table->n_column; j++) {
            format_cell(table->column[j].digits, table->row[i].value[j], text);
            fprintf(out, "  %*s", table->column[j].width, text);
        }
        fputc('\n', out);
    }
}

static void print_quoted(const char *text, FILE *out)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

void em_table_print_csv(const em_table *table, FILE *out)
{
    fputs("name", out);
    for (int64_t j = 0; j < table->n_column; j++)
        fprintf(out, ",%s", table->column[j].name);
    fputc('\n', out);
    for (int64_t i = 0; i < table->n_row; i++) {
        print_quoted(table->row[i].name, out);
        for (int64_t j = 0; j < table->n_column; j++)
            fprintf(out, ",%.17g", table->row[i].value[j]);
        fputc('\n', out);
    }
}

struct order {
    int64_t column;
    bool ascending;
};

static int compare_rows(const void *left, const void *right, void *context)
{
    const em_row *a = left, *b = right;
    const struct order *order = context;
    double x = a->value[order->column], y = b->value[order->column];

    if (isnan(x) != isnan(y))
        return isnan(x) ? -1 : 1;
    if (x < y || x > y)
        return (x < y) == order->ascending ? -1 : 1;
    return (a->value > b->value) - (a->value < b->value);
}

void em_table_sort(em_table *table, int64_t column, bool ascending)
{
    struct order order = {column, ascending};

    qsort_r(table->row, (size_t)table->n_row, sizeof *table->row, compare_rows, &order);
}
