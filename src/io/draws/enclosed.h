/*
 * A file kept inside an output. Its bytes are the dataset `bytes` of a group, in rows of equal
 * length; the last row is padded with zeros, and the attribute `length` is the number of bytes. A
 * netCDF reader sees an array of small integers.
 */
#pragma once

#include "io/draws/group.h"

/* Writes the file `path`, which rank 0 reads, into the group. Collective. Errors, agreed: EM_EIO,
 * also where there is no such file; EM_EMEMORY. */
em_status em_enclosed_put(em_group *group, const char *path);

/* Writes the file that a group of the output `from` contains to the new file `to`. Local. Errors:
 * EM_EDATA if there is no such file or it is damaged, `to` is then not created; EM_EIO, EM_EMEMORY.
 */
em_status em_enclosed_take(const char *from, const char *group, const char *to);
