/* A table of numbers as read from a file: all its rows, on every rank, before they are dealt. */
#ifndef EM_DATA_TABLE_H
#define EM_DATA_TABLE_H

#include "data/table_options.h"
#include "emass/status.h"

#include <stdint.h>

/* Row i has the entries start[i] <= k < start[i + 1]: value[k] in column column[k], ascending. */
typedef struct em_table {
    char *path;
    int64_t n_row, n_column;
    char **name;      /* [n_column]; x1, x2, ... where the file names none */
    int64_t *line;    /* [n_row] of the file; rows of an HDF5 dataset count from 1 */
    double *response; /* [n_row]; NULL: none, or still among the columns */
    double *exposure; /* [n_row]; NULL: none */
    int64_t *start;   /* [n_row + 1] */
    int32_t *column;  /* NULL: dense, every row has all columns */
    double *value;
    uint64_t hash; /* XXH64 of the content read */
    int64_t line_capacity, start_capacity, column_capacity, value_capacity, response_capacity;
} em_table;

/*
 * Reads options->data; of a LIBSVM file the labels become the response, else all columns stay
 * columns. Local. Errors: EM_EDATA, one line naming file and line, what was found and what was
 * expected; EM_EMEMORY. The site "data" of base/fault.h fails here.
 */
em_status em_table_read(const em_table_options *options, em_table **out);
void em_table_destroy(em_table **table); /* NULL-safe. */

/*
 * Makes a table of generated numbers, value[n_row][n_column], with the names x1, x2, ... Local.
 * Errors: EM_EMEMORY.
 */
em_status em_table_generate(const char *name, int64_t n_row, int64_t n_column, const double *value,
                            em_table **out);

/*
 * Moves the response, and the exposure, out of the columns, as the options say, and checks that as
 * many features remain as they say. Local. Errors: EM_EDATA, EM_EMEMORY.
 */
em_status em_table_take_response(em_table *table, const em_table_options *options);

/*
 * Turns the response into 0 and 1: `positive`, which some rows must have and some not, becomes 1,
 * all else 0; NaN: labels must be 0 and 1, or -1 and 1. Local. Errors: EM_EDATA, listing the values
 * found.
 */
em_status em_table_binary_response(em_table *table, double positive);

/* For readers: appends an entry to the row being read, and ends it. Local. Errors: EM_EMEMORY. */
em_status em_table_push(em_table *table, double value);
em_status em_table_push_sparse(em_table *table, int32_t column, double value);
em_status em_table_end_row(em_table *table, int64_t line);
em_status em_table_end_row_labelled(em_table *table, int64_t line, double label);

#endif
