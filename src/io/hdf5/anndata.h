/* Reads how AnnData (.h5ad) describes its matrices by attributes and by the groups obs and var. All
 * Local. */
#pragma once

#include "io/hdf5/foreign.h"

#include <stdint.h>

/* The attribute `shape` of a sparse matrix: rows and columns; false if there is none, or no valid
 * one. */
bool em_anndata_extent(hid_t group, int64_t extent[2]);

/* Whether a sparse matrix is in compressed columns. */
bool em_anndata_is_by_columns(hid_t group);

/* The dataset with the names of the rows (obs) or columns (var, of raw/X raw/var) of the matrix at
 * `place`, as the attribute _index names it. Freed by em_release. *length is the number of names;
 * -1: there is no such dataset. Errors: those of em_foreign_object; EM_EMEMORY. */
em_status em_anndata_index(const em_foreign *file, const char *place, bool rows, char **path,
                           int64_t *length);
