/* One reader per kind of file. */
#pragma once

#include "data/design/column_selection.h"
#include "data/reader/first_line.h"
#include "data/reader/lines.h"
#include "data/table/builder.h"
#include "io/hdf5/numbers.h"

/* A delimited table: the number of columns, and the selection of columns; NULL: all, as numbers. */
typedef struct em_delimited {
    const em_table_options *options;
    em_table_format format;
    int64_t n_column;
    em_choice *choice;
    int64_t comment; /* the number of the first line if it begins with #; 0: it does not */
    em_first_line
        *first; /* a first line that may be names, but is read as a row; NULL: there is none */
} em_delimited;

/* Reads the number of columns from the first line, and their names if the line is a header; `first`
 * gets its fields. Local. Errors: EM_EDATA, naming file and line; EM_EMEMORY. */
em_status em_delimited_begin(const em_lines *lines, const char *line, const em_delimited *form,
                             em_table *table, em_first_line *first, bool *is_header);

/* Appends the row of a line, whose text it overwrites. Local. Errors: the same. */
em_status em_delimited_row(const em_lines *lines, char *line, const em_delimited *form,
                           em_table *table);

/* Fill an empty table. Names of columns stay empty where the file has none. `colon` points at the
 * colon of a path FILE.h5:GROUP; NULL: the group that emass convert writes. *hash is the value of
 * em_table.hash that the file stores; 0: none. `chosen`: columns are selected later, so numbers
 * that are not finite are no error yet. `dense_names`: a dense matrix of AnnData has names, too.
 * Collective. Errors, agreed: those of em_table_read. */
em_status em_read_text(const em_table_options *options, em_table *table);
em_status em_read_hdf5(const char *path, const char *colon, bool chosen, bool dense_names,
                       em_table *table, uint64_t *hash);

/* The names of the columns of an HDF5 table or of a matrix of AnnData, name[n_column]; NULL: there
 * are none. `path` is that of em_numbers_open. `chosen`: a name of AnnData may stand for two
 * columns, as only some are used. Each is freed by em_release. Local. Errors: EM_EDATA, EM_EIO,
 * EM_EMEMORY. */
em_status em_read_column_names(const em_numbers *numbers, const char *path, bool chosen,
                               char ***name);

/* The names of the rows, or of the columns, of a matrix of AnnData, from the dataset that
 * em_numbers_form.index names. Memory and errors as for em_read_column_names. Local. */
em_status em_read_index(const em_numbers *numbers, const char *path, bool rows, char ***name);

/* Rows of a table that emass convert wrote, read when they are asked for. */
typedef struct em_rows_source em_rows_source;

/* `path` is borrowed. Local. Errors: as em_numbers_open. */
em_status em_rows_source_open(const char *path, em_rows_source **out);
void em_rows_source_close(em_rows_source **source); /* NULL-safe. Local. */
const em_numbers *em_rows_source_numbers(const em_rows_source *source);

/* Appends the rows first .. first + *count - 1, checked, to those of a table. It ends early, and
 * sets *count to the rows that it has read, once the table has `most` entries or more. Local.
 * Errors: EM_EDATA, EM_EIO, EM_EMEMORY. */
em_status em_rows_source_read(em_rows_source *source, int64_t first, int64_t most, int64_t *count,
                              em_table *table);
