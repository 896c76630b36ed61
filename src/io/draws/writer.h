/*
 * The output file: netCDF-4 in ArviZ's InferenceData schema, written collectively by parallel HDF5.
 * The bytes do not depend on the number of ranks. Every function is Collective over the grid's
 * world and returns an agreed status; arguments marked (same) must be equal on all ranks.
 */
#pragma once

#include "emass/model.h"
#include "emass/status.h"
#include "io/draws/draw_space.h"
#include "par/grid.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct em_writer em_writer;

/* Creates the file, marked incomplete (root attribute `complete` = 0). Fails when it exists, unless
 * `overwrite`. (same) Errors: EM_EUSAGE (exists), EM_EIO. */
em_status em_writer_create(const em_grid *grid, const char *path, bool overwrite, em_writer **out);

/* Adds a group of draws ("posterior", "sample_stats", "warmup_posterior", ...): `n_series` datasets
 * of (chain, draw, ...). All draws but the first space.n_copied are filled at once: with NaN,
 * integers with INT64_MIN, booleans with false. Returns its handle in *group. (same) Errors:
 * EM_EIO, EM_EMEMORY. */
em_status em_writer_add_draws(em_writer *writer, const char *name, int64_t n_series,
                              const em_variable *series, em_draw_space space, int *group);

/* Writes draws first .. first + n of all series of the group, for this rank's chains. `value`:
 * [n_local_chain][n][width], width = the sum of the sizes of the series, a draw's numbers one after
 * the other in the order of the series. With shards, only shard 0 of each group writes; all ranks
 * call. If there are more draws than planned, the group grows to at least twice its size. `first`,
 * `n`: (same). Errors: EM_EIO, EM_EMEMORY. */
em_status em_writer_put_draws(em_writer *writer, int group, int64_t first, int64_t n,
                              const double *value);

/* Writes draws of one chain, local number `chain`, among the planned draws: `value` [n][width].
 * Ranks that have no such chain call it too, and their `value` is ignored. `chain`, `first`, `n`:
 * (same). Errors: EM_EIO, EM_EMEMORY. */
em_status em_writer_put_chain(em_writer *writer, int group, int64_t chain, int64_t first, int64_t n,
                              const double *value);

/* Truncates the group to `n_draw` draws when a file is completed early. (same) Local. */
void em_writer_truncate(em_writer *writer, int group, int64_t n_draw);

/* Writes an array that is the same on all ranks as <group>/<variable name>, with coordinates for
 * its axes. Creates the group if it does not exist. Axes of the same name within a group must have
 * the same extent. (same) Errors: EM_EIO. */
em_status em_writer_put_array(em_writer *writer, const char *group, const em_variable *variable,
                              const double *value);

/* A member of the structures of a record, of `n` doubles. */
typedef struct em_record_column {
    const char *name;
    size_t member;
    em_storage storage;
    int64_t n;
} em_record_column;

/* Writes an array for each column of a record, `variable.shape[0]` structures of `size` bytes. The
 * first axis of `variable` is that of the structures, the second that of several doubles. (same)
 * Errors: EM_EIO, EM_EMEMORY. */
em_status em_writer_put_record(em_writer *writer, const char *group, em_variable variable,
                               size_t n_column, const em_record_column *column, size_t size,
                               const void *record);

/* Stores the bytes of a file, which rank 0 reads, in a group of their own (io/draws/enclosed.h).
 * (same) Errors: EM_EIO, also if there is no such file; EM_EMEMORY. */
em_status em_writer_enclose(em_writer *writer, const char *group, const char *path);

/* A text by its name. */
typedef struct em_text_attribute {
    const char *name, *text;
} em_text_attribute;

/* Adds text attributes to the root and to every group created from now on, as ArviZ does. `text`
 * [n] is borrowed until the writer is closed. (same) Errors: EM_EIO. */
em_status em_writer_sign(em_writer *writer, int n, const em_text_attribute *text);

/* Writes attributes of the root. Writing one again replaces its value; a text that is written again
 * must be short. (same) Errors: EM_EIO. */
em_status em_writer_put_text(em_writer *writer, const char *name, const char *text);
em_status em_writer_put_int(em_writer *writer, const char *name, int64_t value);
em_status em_writer_put_real(em_writer *writer, const char *name, double value);

/* Pushes everything written so far to the file. Errors: EM_EIO. */
em_status em_writer_flush(em_writer *writer);

/* Closes the file and frees the writer; NULL-safe. If `complete`, marks the file complete;
 * otherwise it stays marked incomplete, and the error message is kept. Errors: EM_EIO. */
em_status em_writer_close(em_writer **writer, bool complete);

/* Closes and removes a file that holds nothing yet, and frees the writer; NULL-safe. */
void em_writer_discard(em_writer **writer);
