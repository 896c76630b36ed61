/*
 * Reads IDX files, the format of MNIST, plain or gzipped: a header (0, 0, 8, the number of axes,
 * then the length of each as a big-endian word of 32 bits), then an array of unsigned bytes. All
 * Local.
 */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { EM_IDX_AXES = 4 };

typedef struct em_idx em_idx;

/* What the header says. */
typedef struct em_idx_shape {
    int n_axis;
    int64_t length[EM_IDX_AXES]; /* along each axis, at least 1 */
    int64_t size;                /* their product */
} em_idx_shape;

/* Whether the unpacked file begins like an IDX file. */
bool em_idx_is(const char *path);

/* Opens a file and reads its header; `path` is borrowed until em_idx_close. Errors: EM_EDATA,
 * EM_EMEMORY. The site "data" of base/fault.h fails here. */
em_status em_idx_open(const char *path, em_idx **out);
void em_idx_close(em_idx **idx); /* NULL-safe. */

const em_idx_shape *em_idx_shape_of(const em_idx *idx);

/* Whether the file is not compressed, so that any part of it can be read by itself. */
bool em_idx_is_plain(const em_idx *idx);

/* The bytes of an item; the first axis counts items. */
int64_t em_idx_item(const em_idx *idx);

/* Reads items first .. first + count - 1. A compressed file can only be read forwards. The file
 * must end after its last item. Adds to *hash the hashes of these items, which depend on their
 * numbers and the header; the sum over all items is the hash of the file. Errors: EM_EDATA. */
em_status em_idx_read(em_idx *idx, int64_t first, int64_t count, uint8_t *out, uint64_t *hash);
