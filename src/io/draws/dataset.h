/* One dataset of a writer's file: created, grown and written by all ranks together. */
#pragma once

#include "emass/model.h"
#include "io/draws/writer.h"
#include "io/hdf5/hdf5.h"

enum { EM_CHAIN_AXIS, EM_DRAW_AXIS, EM_DATASET_AXES = 2 + EM_MAX_AXES };

typedef struct em_dataset {
    hid_t id;
    hid_t type; /* the type in memory and in the file; owned by whoever sets it */
    int n_axes;
    hsize_t extent[EM_DATASET_AXES];
    hsize_t chunk[EM_DATASET_AXES]; /* chunk[0] = 0: contiguous, of a fixed extent; otherwise the
                                       draw axis (the only one of a one-dimensional dataset) is
                                       unlimited */
} em_dataset;

/* The part of a dataset that a rank writes; count NULL: none. */
typedef struct em_slab {
    const hsize_t *start, *count;
} em_slab;

/* The type in memory and in the file of a storage class. Local. */
hid_t em_dataset_type(em_storage storage);

/* Converts `n` numbers to a storage class. NaN, and numbers out of the range of integers, become
 * INT64_MIN or false. Local. */
void em_dataset_convert(em_storage storage, int64_t n, const double *value, void *out);

/* The bytes that the dataset takes in the file, its index of chunks included. Local. */
int64_t em_dataset_bytes(const em_dataset *dataset);

/* Creates dataset->id as group/name from the other members. Its space in the file is allocated at
 * once but not written, so that writing values changes no metadata. Disk space is reserved for a
 * dataset of fixed extent; for datasets that grow together, the caller reserves it. Collective.
 * Errors: EM_EIO, agreed. */
em_status em_dataset_create(hid_t group, const char *name, em_dataset *dataset);

/* Adds the attributes by which readers recognise a storage class: _FillValue, dtype. Collective.
 * Errors: EM_EIO. */
em_status em_dataset_mark(const em_dataset *dataset, em_storage storage);

/* Writes `value`, the packed numbers of this rank's slab, in one collective transfer, after which
 * all ranks must agree. Collective. Errors: EM_EIO, with `what` in the message. */
em_status em_dataset_write(const em_dataset *dataset, em_slab slab, const void *value,
                           const char *what);

/* Writes the whole dataset, from rank 0. Collective. Errors: EM_EIO. */
em_status em_dataset_write_all(const em_dataset *dataset, const void *value);

/* Changes the extent of the draw axis; all ranks must then agree. Collective. Errors: EM_EIO. */
em_status em_dataset_resize(em_dataset *dataset, int64_t n_draw);

void em_dataset_close(em_dataset *dataset); /* Collective. */

/* The role of a variable (parameter or not), whether tables number its elements from 0 or 1, and
 * whether convergence checks skip it, as attributes of its dataset. */

/* Writes `role` unless it is parameter, `index_base` if it is 1, and `watched`, 0, if the variable
 * is unwatched. Collective, not agreed, as em_attribute_write. Errors: EM_EIO. */
em_status em_role_write(hid_t dataset, const em_variable *variable);

/* Reads them; the defaults are a parameter, 0, and watched. Local. */
void em_role_read(hid_t dataset, em_role *role, int64_t *index_base, bool *unwatched);
