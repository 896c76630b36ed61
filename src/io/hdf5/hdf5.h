/* What every file of this room needs of HDF5: its error text in ours, and one way to close. */
#ifndef EM_IO_HDF5_HDF5_H
#define EM_IO_HDF5_HDF5_H

#include "emass/status.h"

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

/* Stops HDF5 from printing its error stack; em_h5_check reports it. Local. */
void em_h5_quiet(void);

/* EM_OK when `result`, what an HDF5 call returned, is not negative. Otherwise em_fail(EM_EIO) with
 * "<file>:<path of location>: <text>: <HDF5's innermost message>". `location` is any open file or
 * object. Local. */
em_status em_h5_check(int64_t result, hid_t location, const char *format, ...) EM_PRINTF(3, 4);

/* The same for reading: EM_EDATA, a damaged file, unless the system says why it could not be read.
 * Local. */
em_status em_h5_check_read(int64_t result, hid_t location, const char *what);

/* Fails where EMASS_FAULT has this site fail (base/fault.h). A site after a call that all ranks
 * make together stands for its failure on one of them. Local. */
em_status em_h5_fault(const char *site, hid_t location);

/* Why the last call of HDF5 failed, "" when it does not say: its innermost message, of which what
 * the system had to say is kept alone. Returns the errno in it; 0: none. Local. */
int em_h5_message(char *text, size_t bytes);

/* Has the disk keep room for `bytes` more of a file, and for metadata, before HDF5 is given them:
 * what a full disk, a quota or a limit on file sizes refuses is refused here, on rank 0, which
 * tells the others by the next agreement. From a collective write one rank would come back with an
 * error and the others perhaps never. Local. Errors: EM_EIO. */
em_status em_h5_reserve(hid_t location, int64_t bytes);

/* The same for the beginning of a file that is there, before and after HDF5 writes it. Local.
 * Errors: EM_EIO. */
em_status em_h5_reserve_start(const char *path);

/* Makes that file anew, in place of what stands there: a link is not followed. Local, rank 0.
 * Errors: EM_EIO. */
em_status em_h5_make(const char *path);

/* Writes what HDF5 holds back of the file. Collective. Errors: EM_EIO, agreed. */
em_status em_h5_flush(hid_t location);

/* A file access list for a file that all ranks of `world` open together. Local. Closed by
 * em_h5_close. */
hid_t em_h5_parallel_access(MPI_Comm world);

/* Has HDF5 keep the metadata of a file that is opened by this list in a cache of the largest size
 * that it allows: what it evicts depends on the number of ranks, and where a list of dimensions is
 * stored (in a global heap with room, if one is cached) on what was evicted. So do the bytes of the
 * file. Local. */
void em_h5_keep_metadata(hid_t access);

/* A transfer list for what all ranks read or write together. Local. Closed by em_h5_close. */
hid_t em_h5_collective_transfer(void);

/* Closes a handle of any kind and sets it to H5I_INVALID_HID; does nothing to an invalid one.
 * Returns what HDF5 returned. Local, Collective for datasets, groups and files of a writer. */
herr_t em_h5_close(hid_t *id);

/* The same for each of the handles: em_h5_close_all(&a, &b). */
#define em_h5_close_all(...)                                                                       \
    em_h5_close_each((hid_t *[]){__VA_ARGS__}, sizeof((hid_t *[]){__VA_ARGS__}) / sizeof(hid_t *))
void em_h5_close_each(hid_t *const *id, size_t n);

/* Whether a file that cannot be read may have been meant to be HDF5: it begins like that, or with
 * the zeros of a beginning that was not written yet. Local. */
bool em_h5_may_be(const char *path);

/* Attributes of groups and datasets. */

/* Opens an attribute that is one value of the class, and its type; invalid where there is none.
 * Both are closed by em_h5_close. Local. */
hid_t em_attribute_open(hid_t object, const char *name, H5T_class_t class, hid_t *type);

/* Reads an attribute that is one text of fixed length, of fewer than `bytes` bytes; false and ""
 * where there is none. Local. */
bool em_attribute_read_text(hid_t object, const char *name, size_t bytes, char *text);

/* Writes an attribute in place of one of the same name. All ranks of a writer's file must call with
 * the same arguments, also one where the last attribute failed, and then agree: the metadata that
 * each keeps in memory must not differ, or closing the file never ends. `value` is of `type`, the
 * type in the file, too. Errors: EM_EIO. */
em_status em_attribute_write(hid_t object, const char *name, hid_t type, hid_t space,
                             const void *value);

/* The same for a scalar string: fixed length, null-terminated, UTF-8. Of any length: the objects of
 * a writer's file can hold attributes larger than 64 KiB (dense storage, HDF5 1.8). */
em_status em_attribute_write_text(hid_t object, const char *name, const char *text);

/* The same for a list of strings, each null-terminated in its `size` bytes. */
em_status em_attribute_write_words(hid_t object, const char *name, int n, size_t size,
                                   const char *words);

/* The same for a single number. */
em_status em_attribute_write_int(hid_t object, const char *name, int64_t value);
em_status em_attribute_write_real(hid_t object, const char *name, double value);

/* What HDF5 prints of its own: ours is in our messages, a host's is the host's. */

/* How HDF5 prints its error stacks. */
typedef struct em_h5_printing {
    void *function, *to;
} em_h5_printing;

/* From here to em_h5_restore it prints none. Local. */
em_h5_printing em_h5_silence(void);
void em_h5_restore(em_h5_printing before);

#endif
