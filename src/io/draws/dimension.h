/*
 * The named dimensions of a group: each has a coordinate dataset of the same name, which is an HDF5
 * dimension scale (CLASS, NAME, REFERENCE_LIST; its users have a DIMENSION_LIST). H5DSattach_scale
 * is not used, because it writes uninitialised bytes into the file, and rewrites the list of users
 * for each user.
 *
 * Labels are stored in the form of netCDF-4 text that every program can read: characters,
 * name(name, string<n>), with the attribute _Encoding. string<n> is a dimension without coordinate.
 * h5netcdf would read text of fixed length as bytes, and R's ncdf4 1.21 would crash.
 */
#pragma once

#include "io/draws/dataset.h"

typedef struct em_dimension em_dimension;

/* The dimensions of one group, in the order of their creation. At first all members are zero but
 * `group` and `count`. */
typedef struct em_dimensions {
    hid_t group;
    int32_t *count; /* number of dimensions in the whole file; gives each its netCDF number */
    em_dimension *first;
} em_dimensions;

/* The group's dimension of this name and extent. If it does not exist, it is created with its
 * coordinate: `label` [extent], or 0, 1, ... if NULL. `chunk` 0: the extent is fixed; otherwise the
 * dimension is unlimited, and its coordinate has chunks of this size. Collective. Errors: EM_EIO,
 * EM_EMEMORY, EM_EINTERNAL (the same name with another extent), agreed. */
em_status em_dimension_get(em_dimensions *dimensions, const char *name, int64_t extent,
                           int64_t chunk, const char *const *label, em_dimension **out);

/* Names the axes of group/name, one dimension each, in its DIMENSION_LIST; all ranks must
 * then agree. Collective. Errors: EM_EIO, EM_EMEMORY. */
em_status em_dimension_attach(const em_dimensions *dimensions, const char *name,
                              const em_dataset *dataset, em_dimension *const *axis);

/* Writes the REFERENCE_LISTs that em_dimension_attach has collected. Collective. Errors: EM_EIO. */
em_status em_dimensions_finish(em_dimensions *dimensions);

/* Gives an unlimited dimension another extent and the coordinate 0, 1, ... Collective. Errors:
 * EM_EIO, EM_EMEMORY, agreed. */
em_status em_dimension_resize(em_dimension *dimension, int64_t extent);

void em_dimensions_close(em_dimensions *dimensions); /* Collective. */
