/* Reads the coordinates of the axes of a dataset, which name its elements. All Local. */
#pragma once

#include "io/draws/reader.h"
#include "io/hdf5/foreign.h"

/* The NUL included; longer ones are cut. */
enum { EM_LABEL_BYTES = 256, EM_AXIS_BYTES = 1024 };

/* Copies a name as it may be printed, cut to EM_LABEL_BYTES. Errors: EM_EMEMORY. Freed by
 * em_release. */
em_status em_label_copy(const char *name, char **out);

/* The coordinate dataset of an axis; invalid if it has none. Closed by em_h5_close. Errors:
 * EM_EDATA. */
em_status em_scale_of(const em_foreign *file, hid_t dataset, unsigned axis, hid_t *scale);

/* The name of an axis: that of its coordinate, or "" if it has none. Errors: EM_EDATA. */
em_status em_axis_name(const em_foreign *file, hid_t dataset, unsigned axis,
                       char name[EM_AXIS_BYTES]);

/* Reads the labels of a variable's own axes, which are those of its dataset after chain and draw.
 * em_reader_label makes the names of elements from them. An axis without a coordinate of its length
 * is numbered from 0, or from 1 with variable->index_base 1. Labels may be stored as characters or
 * as strings of fixed or variable length. Errors: EM_EDATA if the labels are longer than the
 * file; EM_EIO, EM_EMEMORY. */
em_status em_label_axes(em_foreign *file, hid_t dataset, em_reader_variable *variable);
void em_label_release(em_reader_variable *variable);

/* The first element whose name differs between two variables of one shape; -1: none. */
int64_t em_label_difference(const em_reader_variable *one, const em_reader_variable *other);

/* Reads the labels of a coordinate, the dataset `scale`. It has texts, numbers, or characters as
 * rows of a matrix. Texts are converted to printable form, and numbers to texts. The array and each
 * label are freed by em_release. Errors: likewise. */
em_status em_labels_of(em_foreign *file, hid_t scale, int64_t base, int64_t n, char ***label);
