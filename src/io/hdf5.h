/* What every file of this room needs of HDF5: its error text in ours, and one way to close. */
#ifndef EM_IO_HDF5_H
#define EM_IO_HDF5_H

#include "emass/status.h"

#include <hdf5.h>
#include <stdint.h>

/* Stops HDF5 from printing its error stack; em_h5_check reports it. Local. */
void em_h5_quiet(void);

/*
 * EM_OK when `result`, what an HDF5 call returned, is not negative. Otherwise em_fail(EM_EIO) with
 * "<file>:<path of location>: <text>: <HDF5's innermost message>". `location` is any open file or
 * object. Local.
 */
em_status em_h5_check(int64_t result, hid_t location, const char *format, ...) EM_PRINTF(3, 4);

/* HDF5's innermost message of the last failed call, "" when it has none. Local. */
void em_h5_message(char *text, size_t bytes);

/* A file access list for a file that all ranks of `world` open together. Local. Closed by
 * em_h5_close. */
hid_t em_h5_parallel_access(MPI_Comm world);

/* Closes a handle of any kind and sets it to H5I_INVALID_HID; does nothing to an invalid one.
 * Returns what HDF5 returned. Local, Collective for datasets, groups and files of a writer. */
herr_t em_h5_close(hid_t *id);

#endif
