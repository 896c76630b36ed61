#include "app/table.h"

#include "base/text.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

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

/* How many columns of a terminal UTF-8 text takes: wide characters two, combining ones none. */
static int shown(const char *text)
{
    int columns = 0;

    while (*text) {
        uint32_t code;
        const int bytes = em_utf8_decode(text, &code);
        const int width = bytes ? wcwidth((wchar_t)code) : 1;

        columns += width < 0 ? 1 : width;
        text += bytes ? bytes : 1;
    }
    return columns;
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

static void print_aligned(em_table *table, FILE *out)
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

/* The width of characters is asked of a locale that knows them, whatever the host's is. */
void em_table_print(em_table *table, FILE *out)
{
    locale_t unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = uselocale(unicode);

    print_aligned(table, out);
    uselocale(before);
    if (unicode)
        freelocale(unicode);
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
