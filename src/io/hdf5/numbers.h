/*
 * Tables of numbers in HDF5 files: a dataset of one or two dimensions, or a group as emass convert
 * writes it, of
 *     value [row][column]      or, if most numbers are 0,
 *     start [row + 1], column [entry], value [entry]: row i has the entries from start[i] on;
 *     response [row]           optional;
 *     name [column]            text of fixed length; or the attribute `columns`, their number;
 *     document, label [row]    text of fixed length; optional;
 * and the attribute `hash`; or a matrix in compressed rows as AnnData (.h5ad) writes it. The files
 * are of unknown origin (io/hdf5/foreign.h). All Local.
 */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct em_numbers em_numbers;

/* The datasets of a table. */
typedef enum em_numbers_part {
    EM_NUMBERS_VALUE,
    EM_NUMBERS_START,
    EM_NUMBERS_COLUMN,
    EM_NUMBERS_RESPONSE,
    EM_N_NUMBERS_PART
} em_numbers_part;

typedef struct em_numbers_form {
    int64_t n_row, n_column;
    int64_t n_entry; /* of a sparse table; -1: dense */
    bool labelled;   /* the response is stored apart */
    bool hashed;
    uint64_t hash;  /* where hashed */
    char *index[2]; /* of a matrix of AnnData, sparse or dense: the datasets with the names of its
                       columns and of its rows; NULL: the table is no such matrix */
    bool has_index[2]; /* whether they exist */
} em_numbers_form;

/* The group of the table in files of emass convert. */
#define EM_NUMBERS_PLACE "/table"

enum { EM_WIDEST_NAME = 1 << 12 }; /* bytes of a name */

/* Whether a file begins as HDF5 files do. False where it cannot be read. */
bool em_numbers_is_hdf5(const char *path);

/* Opens the dataset or group `place` of a file. If `place` is EM_NUMBERS_PLACE and the file does
 * not have it, the matrix X of an AnnData file is opened. `path` is borrowed until
 * em_numbers_close. Errors: EM_EDATA, with `path` in the message; EM_EIO, EM_EMEMORY. */
em_status em_numbers_open(const char *path, const char *place, em_numbers **out);
void em_numbers_close(em_numbers **numbers); /* NULL-safe. */

em_numbers_form em_numbers_form_of(const em_numbers *numbers);

/* The names of the columns, name[n_column] and each of its texts freed by em_release; NULL: there
 * are none. Errors: EM_EDATA, EM_EMEMORY. */
em_status em_numbers_names(const em_numbers *numbers, char ***name);

/* The rows (entries) first .. first + count - 1 of a part, as int64_t (START, COLUMN) or double.
 * Errors: EM_EDATA, EM_EIO. */
em_status em_numbers_read(const em_numbers *numbers, em_numbers_part part, int64_t first,
                          int64_t count, void *out);

/* Announces that these rows (entries) of a part will be read soon. If the file stores them without
 * compression, the system starts to read them. */
void em_numbers_ahead(const em_numbers *numbers, em_numbers_part part, int64_t first,
                      int64_t count);

/* ---------------------------------------------------------------- writing */

typedef struct em_numbers_writer em_numbers_writer;

/* Whether a file has the mark of a file written by emass. */
bool em_numbers_is_ours(const char *path);

/* Creates a file with one table of that form at EM_NUMBERS_PLACE and the attribute `source`. `name`
 * NULL: a sparse table without names of columns. Errors: EM_EIO, EM_EDATA, EM_EMEMORY;
 * em_numbers_finish must then be called, too. */
em_status em_numbers_create(const char *path, const em_numbers_form *form, char *const *name,
                            const char *source, em_numbers_writer **out);

/* Writes the rows (entries) first .. first + count - 1 of a part, with the types of
 * em_numbers_read, except COLUMN, which is int32_t. Errors: EM_EIO. */
em_status em_numbers_write(em_numbers_writer *writer, em_numbers_part part, int64_t first,
                           int64_t count, const void *value);

/* Writes text [n] beside the table, as a dataset named `as`. Errors: EM_EDATA if a text is longer
 * than 4 KiB; EM_EIO, EM_EMEMORY. */
em_status em_numbers_write_texts(em_numbers_writer *writer, const char *as, int64_t n,
                                 char *const *text);

/* Writes what is left and closes; NULL-safe. Returns `status` if it is an error. Errors: EM_EIO. */
em_status em_numbers_finish(em_numbers_writer **writer, em_status status);
