/*
 * IDX files, as MNIST comes in: an array of unsigned bytes behind a header (0, 0, 8, the number of
 * axes, then the length of each as a big-endian word of 32 bits), plain or gzipped. All Local.
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

/* Whether a file begins as those do: unpacks its first bytes. */
bool em_idx_is(const char *path);

/* Opens a file and reads its header; `path` is borrowed until em_idx_close. Errors: EM_EDATA,
 * EM_EMEMORY. The site "data" of base/fault.h fails here. */
em_status em_idx_open(const char *path, em_idx **out);
void em_idx_close(em_idx **idx); /* NULL-safe. */

const em_idx_shape *em_idx_shape_of(const em_idx *idx);

/* Whether bytes can be read from the middle on: the file is not packed. */
bool em_idx_is_plain(const em_idx *idx);

/* Bytes of an item, which is what the first axis counts. */
int64_t em_idx_item(const em_idx *idx);

/* Reads items first .. first + count - 1, of a packed file none that are before those read; behind
 * the last item of all the file must end. *hash += those of the items, which are of their numbers
 * too, and of the header: their sum is that of the file, whoever read what. Errors: EM_EDATA; of
 * parts of a truncated file the first one that is not there says so. */
em_status em_idx_read(em_idx *idx, int64_t first, int64_t count, uint8_t *out, uint64_t *hash);
