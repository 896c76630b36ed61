/* Helpers for all files that call HDF5: errors as em_status, attributes, property lists, closing.
 */
#pragma once

#include "base/memory.h"
#include "emass/status.h"

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

/* Stops HDF5 from printing its error stack. em_h5_check reports the error instead. Local. */
static inline void em_h5_quiet(void)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

/* Returns EM_OK if `result`, the value of an HDF5 call, is not negative. Otherwise fails with
 * EM_EIO and "<file>:<path of location>: <text>: <HDF5's innermost message>". `location` is any
 * open file or object. Local. */
em_status em_h5_check(int64_t result, hid_t location, const char *format, ...) EM_PRINTF(3, 4);

/* Checks the result of reading in the same way, but with EM_EDATA for a damaged file, and EM_EIO if
 * the system could not read it. Local. */
em_status em_h5_check_read(int64_t result, hid_t location, const char *what);

/* Fails if EMASS_FAULT names this site (base/fault.h). After a collective call it simulates a
 * failure on one rank. Local. */
em_status em_h5_fault(const char *site, hid_t location);

/* The innermost message of the last failed HDF5 call, or only the system's part of it; "" if there
 * is none. Returns the errno of the failed call, or 0. Local. */
int em_h5_message(char *text, size_t bytes);

/* Reserves disk space for `bytes` more of a file and for metadata before HDF5 needs it. A full
 * disk, a quota or a file size limit then causes an error here, on rank 0, which the next agreement
 * passes to the other ranks. During a collective write only one rank might get the error, and the
 * others might hang. Local. Errors: EM_EIO. */
em_status em_h5_reserve(hid_t location, int64_t bytes);

/* Reserves disk space for the first bytes of a file, before and after HDF5 writes them. Local.
 * Errors: EM_EIO. */
em_status em_h5_reserve_start(const char *path);

/* Creates or empties a file; links are not followed. Local, rank 0. Errors: EM_EIO. */
em_status em_h5_make(const char *path);

/* Writes the buffers of HDF5 to the file. Collective. Errors: EM_EIO, agreed. */
em_status em_h5_flush(hid_t location);

/* A file access list for a file that all ranks of `world` open together. Closed by em_h5_close.
 * Local. */
hid_t em_h5_parallel_access(MPI_Comm world);

/* Gives the metadata cache of files opened by this list the largest size that HDF5 allows. A
 * smaller cache would evict entries depending on the number of ranks, and evictions change where
 * lists of dimensions are in the file. The bytes of the file would then depend on the number of
 * ranks. Local. */
void em_h5_keep_metadata(hid_t access);

/* A transfer list for collective reads and writes. Closed by em_h5_close. Local. */
hid_t em_h5_collective_transfer(void);

/* Closes a handle of any kind and sets it to H5I_INVALID_HID; does nothing to an invalid one.
 * Returns what HDF5 returned. Local, Collective for datasets, groups and files of a writer. */
herr_t em_h5_close(hid_t *id);

/* Begins the declaration of local handles, which are closed where their scope ends. */
#define EM_SCOPED_ID EM_SCOPED_BY(em_h5_close)

/* Closes each of the handles in the same way: em_h5_close_all(&a, &b). */
#define em_h5_close_all(...)                                                                       \
    em_h5_close_each((hid_t *[]){__VA_ARGS__}, sizeof((hid_t *[]){__VA_ARGS__}) / sizeof(hid_t *))
void em_h5_close_each(hid_t *const *id, size_t n);

/* Whether an unreadable file is probably an HDF5 file: it begins like one, or with zeros because
 * its first bytes were not written yet. Local. */
bool em_h5_may_be(const char *path);

/* Attributes of groups and datasets. */

/* Opens an attribute that has one value of the class, and its type; invalid if there is none. Both
 * are closed by em_h5_close. Local. */
hid_t em_attribute_open(hid_t object, const char *name, H5T_class_t class, hid_t *type);

/* Reads an integer attribute; `otherwise` if there is none. Local. */
int64_t em_attribute_read_int(hid_t object, const char *name, int64_t otherwise);

/* Reads an attribute that is one text of fixed length, of fewer than `bytes` bytes; false and "" if
 * there is none. Local. */
bool em_attribute_read_text(hid_t object, const char *name, size_t bytes, char *text);

/* Reads a text of fixed or of variable length, as other programs write it, in the same way. Local.
 */
bool em_attribute_read_any_text(hid_t object, const char *name, size_t bytes, char *text);

/* Writes an attribute, in place of one of the same name. All ranks of a writer's file must call
 * with the same arguments, even after an attribute has failed, and then agree: if the metadata of
 * ranks differ, closing the file hangs. `value` is of `type`, which is also the type in the file.
 * Errors: EM_EIO. */
em_status em_attribute_write(hid_t object, const char *name, hid_t type, hid_t space,
                             const void *value);

/* Writes a string in the same way: fixed length, null-terminated, UTF-8, of any length. Objects of
 * a writer's file can hold attributes larger than 64 KiB (dense storage, HDF5 1.8). */
em_status em_attribute_write_text(hid_t object, const char *name, const char *text);

/* Writes a list of strings in the same way, each null-terminated within its `size` bytes. */
em_status em_attribute_write_words(hid_t object, const char *name, int n, size_t size,
                                   const char *words);

/* Writes a single number in the same way. */
em_status em_attribute_write_int(hid_t object, const char *name, int64_t value);
em_status em_attribute_write_real(hid_t object, const char *name, double value);

/* HDF5 prints error stacks. emass uses them in its own messages instead, and restores the setting
 * of a host program. */

/* How HDF5 prints its error stacks. */
typedef struct em_h5_printing {
    void *function, *to;
} em_h5_printing;

/* Until em_h5_restore HDF5 prints no error stacks. Local. */
em_h5_printing em_h5_silence(void);
void em_h5_restore(em_h5_printing before);

/* Writes the names and versions of the MPI and HDF5 that run, "Open MPI v4.1.4, HDF5 1.10.8", into
 * text [size]. Local. */
void em_h5_libraries(size_t size, char *text);
