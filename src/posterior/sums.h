/*
 * Private to this folder: sums over the parts of the data on all shards. They depend neither on the
 * order of the parts nor on their assignment to shards (math/binned.h). The last of the n numbers
 * counts the shards that failed, so that one message has both.
 */
#pragma once

#include "emass/status.h"
#include "par/grid.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct em_sums {
    int64_t n;    /* a multiple of 8 */
    double *part; /* [n] the terms of one part; at the end the sums */
    double *bins; /* [em_binned_size(n)] */
} em_sums;

/* Allocates sums of n numbers. Local. Errors: EM_EMEMORY; em_sums_release must then be called, too.
 */
em_status em_sums_create(int64_t n, em_sums *out);
void em_sums_release(em_sums *sums);

/* Sums of n numbers, set to zero, which use the memory of `whole`. `is_one`: the sums have one part
 * and need no bins. Local. */
em_sums em_sums_begin(const em_sums *whole, int64_t n, bool is_one);

/* Writes the sums over all shards (grid NULL: over this one) to s->part. If one shard has failed,
 * all of them fail. Collective over the ranks of a group. */
em_status em_sums_end(const em_sums *s, const em_grid *grid, em_status status);

/* Writes the sums to s->part, as em_sums_end, if all data are one part on one rank. Local. */
em_status em_sums_of_one(const em_sums *s, em_status status);
