/* A table of numbers with named rows and columns, for people and for programs. All Local. */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* How the numbers of a column are shown to people; programs get all digits. */
typedef enum em_digits { EM_DIGITS_FOUR, EM_DIGITS_WHOLE, EM_DIGITS_THOUSANDTHS } em_digits;

typedef struct em_column {
    char *name; /* UTF-8 */
    em_digits digits;
    double most; /* larger numbers are shown in a warning colour; 0: none */
    int width;   /* set by em_table_print */
} em_column;

/* The columns of a summary in their order, described in draws_summary.c. Up to the first percentile
 * this is also the place in a row. em_summary.place has the places of the others. */
enum em_summary_column {
    EM_COLUMN_MEAN,
    EM_COLUMN_MCSE,
    EM_COLUMN_SD,
    EM_COLUMN_PERCENTILES, /* the first of them */
    EM_COLUMN_ESS_BULK,
    EM_COLUMN_ESS_SQUARE,
    EM_COLUMN_ESS_TAIL,
    EM_COLUMN_R_HAT,
    EM_COLUMN_R_HAT_NESTED,
    EM_N_SUMMARY_COLUMN
};

typedef struct em_summary_row {
    const char *name;        /* UTF-8, borrowed */
    const double *value;     /* [n_column], borrowed */
    const char *note;        /* shown in place of the values; NULL: none */
    int64_t variable, index; /* the element of the file that the row shows, if it shows one */
} em_summary_row;

/* The places in a row of what a verdict needs. The EM_N_JUDGED numbers are not printed. */
typedef struct em_judge_columns {
    int64_t ess_bulk, ess_tail, r_hat; /* r_hat: the nested one of superchains */
    int64_t judged;                    /* the first of EM_N_JUDGED (evidence.h) */
} em_judge_columns;

typedef struct em_summary_table {
    int64_t n_row, n_column;
    em_summary_row *row;
    em_column *column;
    em_judge_columns at; /* of a table of draws */
} em_summary_table;

/* Creates a table with n_row empty rows and no columns yet. Errors: EM_EMEMORY; call
 * em_table_release even then. */
em_status em_table_begin(int64_t n_row, int64_t most_columns, em_summary_table *out);
em_status em_table_add_column(em_summary_table *table, em_digits digits, const char *name);
void em_table_release(em_summary_table *table);

/* Writes a number as its column shows it to people. */
enum { EM_TABLE_CELL = 32 };
void em_table_cell(const em_column *column, double x, char text[EM_TABLE_CELL]);

/* Prints aligned columns. If a terminal is too narrow for all columns, the rest follows below, and
 * the names of the rows are repeated. */
void em_table_print(em_summary_table *table, FILE *out);

/* Comma-separated (RFC 4180, but lines end with \n), 17 digits, rows named in the column `name`. */
void em_table_print_csv(const em_summary_table *table, FILE *out);

/* Sorts the rows by a column. Rows with NaN come first. Equal rows keep their order if the values
 * lie in memory in the order of the rows. */
void em_table_sort(em_summary_table *table, int64_t column, bool ascending);

/* The number of rows with a bad value, and the worst of them. */
typedef struct em_worst_row {
    int64_t count;
    double value;
    const em_summary_row *row; /* NULL: none has one */
} em_worst_row;

/* Adds a row whose value is worse the larger it is. */
void em_worst_take(em_worst_row *worst, const em_summary_row *row, double value);

/* The rows in which a number, an EM_JUDGED_, is above 0; the largest is the worst. */
em_worst_row em_find_worst_row(const em_summary_table *table, int64_t judged);
