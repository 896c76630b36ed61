/*
 * The named dimensions of a group: each has a coordinate dataset of the same name, which is an HDF5
 * dimension scale (CLASS, NAME, REFERENCE_LIST; its users have a DIMENSION_LIST).
 * Not by H5DSattach_scale: that writes uninitialised bytes into the file, and rewrites the list of
 * users for each of them.
 *
 * Labels are stored as netCDF-4 stores text that every program can read: characters, name(name,
 * string<n>), with the attribute _Encoding; string<n> is a dimension without coordinate. Text of
 * fixed length is bytes to h5netcdf and crashes R's ncdf4 1.21.
 */
#pragma once

#include "io/draws/dataset.h"

typedef struct em_dimension em_dimension;

/* The dimensions of one group, in the order of their creation. Starts zeroed but for `group` and
 * `count`. */
typedef struct em_dimensions {
    hid_t group;
    int32_t *count; /* of dimensions in the whole file: netCDF's numbers for them */
    em_dimension *first;
} em_dimensions;

/* The group's dimension of this name and extent, made with its coordinate if it is not there yet:
 * `label` [extent], or 0, 1, ... where NULL. `chunk`: 0 for a fixed extent, otherwise the dimension
 * is unlimited and its coordinate has chunks of this many. Collective. Errors: EM_EIO, EM_EMEMORY,
 * EM_EINTERNAL (the same name with another extent), agreed. */
em_status em_dimension_get(em_dimensions *dimensions, const char *name, int64_t extent,
                           int64_t chunk, const char *const *label, em_dimension **out);

/* Names the axes of group/name, one dimension each, in its DIMENSION_LIST; all ranks must
 * then agree. Collective. Errors: EM_EIO, EM_EMEMORY. */
em_status em_dimension_attach(const em_dimensions *dimensions, const char *name,
                              const em_dataset *dataset, em_dimension *const *axis);

/* Writes what em_dimension_attach has collected, the REFERENCE_LISTs. Collective. Errors: EM_EIO.
 */
em_status em_dimensions_finish(em_dimensions *dimensions);

/* Gives an unlimited dimension another extent and the coordinate 0, 1, ... Collective. Errors:
 * EM_EIO, EM_EMEMORY, agreed. */
em_status em_dimension_resize(em_dimension *dimension, int64_t extent);

void em_dimensions_close(em_dimensions *dimensions); /* Collective. */
