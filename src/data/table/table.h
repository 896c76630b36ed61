/* A table of numbers that all ranks read from a file together. Each rank holds the rows that it
 * read until they are redistributed (data/shard/redistribute_rows.h). Members that describe the
 * whole table are the same on all ranks. */
#pragma once

#include "data/table/levels.h"
#include "data/table/table_options.h"
#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Consecutive rows of one rank: rows row .. row + count - 1 of the table are held by rank `rank`,
 * as its rows held .. held + count - 1. */
typedef struct em_row_run {
    int64_t order, row, held, count, rank;
} em_row_run;

/* Held row `held` is on line `line`, and each further row, up to the next break, is on the line
 * after that of the previous row. */
typedef struct em_break {
    int64_t held, line;
} em_break;

/* Row i has all columns, or (sparse) the entries start[i] <= k < start[i + 1]: value[k] in column
 * column[k], ascending. */
typedef struct em_table {
    char *path;
    int64_t total, total_entries; /* rows and entries of the whole table, without the response */
    /* hash of names and numbers; does not depend on the file format or on the ranks */
    uint64_t hash;
    int64_t n_column;
    bool unnamed; /* columns get no names if the file has none */
    char **name;  /* [n_column]; x1, x2, ... if the file has no names; NULL: unnamed */
    bool is_named;
    bool row_guessed; /* the first line is read as a row because there is a number in it */
    bool is_chosen;   /* columns were selected. Then the next two members are the indices of the
                         columns that are no features; -1: there is no such column */
    int64_t response_at, beside_at[EM_N_BESIDE];
    const char **factor; /* [n_column] the reference level of a factor, or ""; NULL: no factor;
                            factor NULL: no factors */
    em_levels
        *text; /* [n_column] texts among the numbers (data/table/levels.h); NULL: there are none */
    em_levels label;   /* those of the response */
    int64_t n_dropped; /* rows omitted because of missing values: on this rank, and of all ranks
                          after em_table_finish */
    int64_t n_run;
    em_row_run *run; /* [n_run] of the whole table, in the order of the rows */
    /* What this rank holds. */
    int64_t n_row;
    double *response;            /* [n_row]; NULL: none, or still among the columns */
    double *beside[EM_N_BESIDE]; /* [n_row] each; NULL: none */
    int64_t *start;              /* [n_row + 1]; NULL: dense */
    int32_t *column;             /* NULL: dense, value[n_row][n_column] */
    double *value;
    int64_t n_value, n_break;
    em_break *line; /* [n_break] */
    int64_t response_capacity, start_capacity, column_capacity, value_capacity, break_capacity,
        run_capacity;
} em_table;

/* Reads options->data; the labels of a LIBSVM file become the response; in other files all columns
 * remain columns. Collective. Errors, agreed: EM_EDATA, with one line about the first bad line of
 * the file: file and line, what was found and what was expected; EM_EMEMORY. The site "data" of
 * base/fault.h fails here. */
em_status em_table_read(const em_table_options *options, em_table **out);
void em_table_destroy(em_table **table); /* NULL-safe. Local. */

/* Makes a table of generated numbers, value[n_row][n_column], the same on all ranks, with the names
 * x1, x2, ... Collective. Errors, agreed: EM_EMEMORY. */
em_status em_table_generate(int64_t n_row, int64_t n_column, const double *value, em_table **out);

/* Informs the user that the first line is read as a row, unless the options say so. Local. */
void em_table_say_guess(const em_table *table);

/* Whether all of n names are UTF-8; `name` may be NULL. Local. */
bool em_names_are_utf8(int64_t n, char *const *name);

/* Prints a value of column j: the text that it stands for, or the number. Local. */
void em_table_print_value(const em_table *table, int64_t j, double value, char out[EM_LEVEL_BYTES]);

/* The index in the whole table of held row i. Local. */
int64_t em_table_row(const em_table *table, int64_t i);

/* Where the values of held row i begin in `value`. Local. */
static inline int64_t em_table_first_value(const em_table *table, int64_t i)
{
    return table->column ? table->start[i] : i * table->n_column;
}

/* The smallest index in the whole table of the held rows that the ranks pass; n_row: this rank
 * passes none. Returns -1 if no rank passes one. Collective. */
int64_t em_table_first_row(const em_table *table, int64_t held);

/* The line of the file on which a row stands; rows of an HDF5 dataset count from 1. All ranks pass
 * the same row. Collective. */
int64_t em_table_line(const em_table *table, int64_t row);

/* The lines of all rows, line[total] on all ranks, freed by em_release. Collective. Errors, agreed:
 * EM_EMEMORY. */
em_status em_table_lines(const em_table *table, double **line);

/* Gathers the responses of all rows in the same way. */
em_status em_table_responses(const em_table *table, double **response);

/* The number in `column` [n_row] of a row, from the rank that holds it. Collective. */
double em_table_number(const em_table *table, int64_t row, const double *column);

/* Moves the response and the columns beside the features out of the table, as the options say.
 * Checks the number of remaining features, and that weights are not negative. Collective. Errors,
 * agreed: EM_EDATA, EM_EMEMORY. */
em_status em_table_take_response(em_table *table, const em_table_options *options);

/* The step of em_table_take_response that moves columns out of the table. Collective. Errors,
 * agreed: EM_EDATA, naming the first line with a negative weight; EM_EMEMORY. */
em_status em_table_set_aside(em_table *table, const em_table_options *options);

/* The names of the columns beside the features in a config: exposure, offset, weights. Local. */
extern const char *const em_beside_names[EM_N_BESIDE];

/* Gives the table the columns of an earlier one, in its order: `name` [n_column], as printed. Other
 * columns are dropped, and columns that are no features are moved out. A file without names must
 * have the same number of columns in that order. The response may be missing; it becomes 0 in all
 * rows. Collective. Errors, agreed: EM_EDATA, EM_EMEMORY. */
em_status em_table_arrange(em_table *table, const em_table_options *options, int64_t n_column,
                           const char *const *name);

/* Turns the response into 0 and 1: `positive`, which some but not all rows must have, becomes 1,
 * all else 0. NaN: the labels must be 0 and 1, or -1 and 1. Collective. Errors, agreed: EM_EDATA,
 * listing the values found. */
em_status em_table_binary_response(em_table *table, double positive);

/* Turns a response of labels, which may be text, into 0 and 1, as em_table_binary_response.
 * `positive` is a text or a number. NULL: labels may also be no and yes, or false and true. */
em_status em_table_label_response(em_table *table, const char *positive);

/* The limit of counts: doubles above it do not represent every integer. */
#define EM_MOST_COUNT 0x1p53

/* Checks that the response is a count in all rows, and the exposure positive if there is one.
 * Collective. Errors, agreed: EM_EDATA, naming the first bad line. */
em_status em_table_check_counts(const em_table *table);
