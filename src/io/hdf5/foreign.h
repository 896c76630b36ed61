/*
 * HDF5 files of unknown origin. Nothing outside the file is touched, and the memory that its
 * contents may need is bounded by its length. Only hard links are followed. A dataset holds its
 * own numbers (no external storage, no virtual dataset) and is compressed at most once. All Local.
 */
#pragma once

#include "io/hdf5/hdf5.h"

#include <stdbool.h>

/* An open file, and how much of its allowance is used. */
typedef struct em_foreign {
    const char *path; /* borrowed */
    hid_t file;
    double bytes;                           /* its length */
    double elements, numbers, stored, text; /* so far: see em_foreign_claim */
} em_foreign;

/* Opens a regular file for reading. Closed by em_foreign_close. Errors: EM_EDATA when there is
 * none, or it is a folder, a FIFO, a device, no HDF5 file, or damaged; EM_EIO when the system
 * cannot read it. */
em_status em_foreign_open(const char *path, em_foreign *file);

static inline void em_foreign_close(em_foreign *file)
{
    em_h5_close(&file->file);
}

/* Opens a group or dataset by its path; *object is invalid if there is none. Closed by em_h5_close.
 * Errors: EM_EDATA if a link on the path leaves the file, or if the dataset is of a kind that is
 * not supported. */
em_status em_foreign_object(const em_foreign *file, const char *path, hid_t *object);

/* Opens a member of an open group in the same way. */
em_status em_foreign_member(const em_foreign *file, hid_t group, const char *name, hid_t *object);

/* The number of links in an open group or file. */
int64_t em_foreign_n_link(hid_t group);

/* Takes a member of a group, and may keep it open by setting *id to H5I_INVALID_HID. */
typedef em_status em_foreign_take(void *context, const char *name, hid_t *id);

/* Opens the first `most` members of an open group or file, and passes those of a type to `take`, in
 * the order of their creation if that is recorded, else by name. Errors: as em_foreign_member, and
 * those of `take`. */
em_status em_foreign_each(const em_foreign *file, hid_t group, H5I_type_t type, int64_t most,
                          em_foreign_take *take, void *context);

/* Checks a dataset that HDF5 opened by a reference. Errors: EM_EDATA. */
em_status em_foreign_check(const em_foreign *file, hid_t dataset);

/* True for a dataset of integers, reals or booleans of at most 16 bytes. */
bool em_foreign_is_number(hid_t object);

/* True for a dataset of integers of at most 16 bytes. */
bool em_foreign_is_integer(hid_t object);

/* Called before a dataset is read. Adds its numbers, its elements if they are rows of a table, and
 * its stored bytes to those of the datasets before it. Errors: EM_EDATA if the sums exceed what a
 * file of this length can contain: 129 numbers per byte (the largest ratio of deflate), one element
 * per byte, and as many stored bytes as the file has. A million numbers and 65536 elements are
 * always allowed. */
em_status em_foreign_claim(em_foreign *file, hid_t dataset, double numbers, double elements);

/* Adds bytes of text to the allowance in the same way. Errors: EM_EDATA if the sum exceeds what the
 * file can contain. */
em_status em_foreign_claim_text(em_foreign *file, double bytes);

/* How many numbers a dataset has by its extents, without overflow of the product of its extents. */
double em_foreign_count(hid_t dataset);
