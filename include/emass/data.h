/*
 * Tables for models: CSV, TSV, spaces, LIBSVM (plain, .gz or .xz) or HDF5 (file.h5:/dataset).
 * Built-in models read their tables by the same code. Each rank reads a part of the file, and an
 * error message names the bad line. The ranks of a node share one copy of rows that more than one
 * of them needs.
 *
 *     em_data *data;
 *     em_status status = em_data_read(options->data, context, &data);    in create
 *     if (status) return status;
 *     model->rows = data->rows;            which observations this rank has, of how many
 *     model->data_hash = data->hash;       all ranks must have the same
 *     double y = data->value[i * data->n_column + em_data_column(data, "y")];
 *
 * where observation i of an em_rows is row i of `value`.
 */
#pragma once

#include "emass/export.h"
#include "emass/model.h"

EM_BEGIN_C

typedef struct em_data {
    em_share rows;           /* the rows that this rank holds */
    int64_t n_column;        /* in a LIBSVM file the label is the last one, "label" */
    const char *const *name; /* [n_column]; x1, x2, ... if the file has no names */
    const double *value;     /* [rows.count][n_column]; read only */
    uint64_t hash;           /* of the whole table */
} em_data;

/*
 * Reads a table and distributes its rows over the shards of the context. A sparse table becomes
 * dense. Collective. Errors, the same on all ranks, with *out NULL: EM_EDATA, naming file and line;
 * EM_EMEMORY.
 */
EM_API em_status em_data_read(const char *path, const em_model_context *context, em_data **out);

/* Reads a table into every rank, which gets all rows: for small tables that are not observations.
 * Collective. Errors: as em_data_read. */
EM_API em_status em_data_read_all(const char *path, em_data **out);

EM_API void em_data_destroy(em_data **data); /* NULL-safe. Local. */

/* The index of a column, from 0; -1 if no column has that name. Local. */
EM_API int64_t em_data_column(const em_data *data, const char *name);

EM_END_C
