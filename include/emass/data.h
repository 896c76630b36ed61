/*
 * Tables for models: CSV, TSV, spaces, LIBSVM (plain, .gz or .xz) or HDF5 (file.h5:/dataset), read
 * as those of the built-in models are: each rank reads a part, a bad line is named, and the ranks
 * of a node have one copy of what they hold alike.
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
    em_share rows;           /* which of all rows are here */
    int64_t n_column;        /* of LIBSVM, the label is the last one, "label" */
    const char *const *name; /* [n_column]; x1, x2, ... where the file names none */
    const double *value;     /* [rows.count][n_column]; not to be written to */
    uint64_t hash;           /* of the whole table */
} em_data;

/*
 * Reads a table and deals its rows to shards, as the context says; what is sparse becomes dense.
 * Collective. Errors, agreed: EM_EDATA, naming file and line, EM_EMEMORY; *out is then NULL.
 */
EM_API em_status em_data_read(const char *path, const em_model_context *context, em_data **out);

/* The same, with all rows on every rank: small tables that are no observations. */
EM_API em_status em_data_read_all(const char *path, em_data **out);

EM_API void em_data_destroy(em_data **data); /* NULL-safe. Local. */

/* The number of a column; -1: there is none of that name. Local. */
EM_API int64_t em_data_column(const em_data *data, const char *name);

EM_END_C
