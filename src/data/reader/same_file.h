/* Ranks that read parts of a file must read parts of one file. */
#ifndef EM_DATA_READER_SAME_FILE_H
#define EM_DATA_READER_SAME_FILE_H

#include "emass/status.h"

#include <stdint.h>

/*
 * Sees that the file named by the first `length` bytes of `path` is the same on all ranks: one file
 * that they share (inode, length and time of the last change), or else copies whose contents each
 * rank reads and compares. Collective. Errors, agreed: EM_EDATA, where it is missing or differs,
 * with the ranks that have another one than rank 0; EM_EMEMORY.
 */
em_status em_same_file(const char *path, int64_t length);

#endif
