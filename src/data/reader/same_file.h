/* Checks that all ranks read the same file. */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Checks that the file named by the first `length` bytes of `path` is the same on all ranks: one
 * shared file (inode, length and modification time), or copies, whose contents each rank then reads
 * and compares. Collective. Errors, agreed: EM_EDATA if it is missing or differs, with the ranks
 * whose file differs from rank 0's; EM_EIO if it cannot be read; EM_EMEMORY. */
em_status em_same_file(const char *path, int64_t length);

/* Whether rank 0 finds that the file begins as HDF5 files do; the same on all ranks. Collective. */
bool em_same_is_hdf5(const char *path);
