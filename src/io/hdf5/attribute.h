/* Attributes of groups and datasets. */
#ifndef EM_IO_HDF5_ATTRIBUTE_H
#define EM_IO_HDF5_ATTRIBUTE_H

#include "io/hdf5/hdf5.h"

/*
 * Writes an attribute in place of one of the same name. All ranks of a writer's file must call with
 * the same arguments, also one where the last attribute failed, and then agree: the metadata that
 * each keeps in memory must not differ, or closing the file never ends. `value` is of `type`, the
 * type in the file, too. Errors: EM_EIO.
 */
em_status em_attribute_write(hid_t object, const char *name, hid_t type, hid_t space,
                             const void *value);

/*
 * The same for a scalar string: fixed length, null-terminated, UTF-8. Of any length: the objects
 * of a writer's file can hold attributes larger than 64 KiB (dense storage, HDF5 1.8).
 */
em_status em_attribute_write_text(hid_t object, const char *name, const char *text);

/* The same for a list of strings, each null-terminated in its `size` bytes. */
em_status em_attribute_write_words(hid_t object, const char *name, int n, size_t size,
                                   const char *words);

/* The same for a single number. */
em_status em_attribute_write_int(hid_t object, const char *name, int64_t value);
em_status em_attribute_write_real(hid_t object, const char *name, double value);

#endif
