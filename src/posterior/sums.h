/*
 * Private to the room: sums over the parts of the data, on all shards, that depend neither on their
 * order nor on how they are dealt (math/binned.h). The last of the n numbers counts the shards that
 * failed, so that one message carries both.
 */
#pragma once

#include "emass/status.h"
#include "par/grid.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct em_sums {
    int64_t n;    /* a multiple of 8 */
    double *part; /* [n] what one part adds; in the end the sums */
    double *bins; /* [em_binned_size(n)] */
} em_sums;

/* Room for sums of n numbers. Local. Errors: EM_EMEMORY; release it all the same. */
em_status em_sums_create(int64_t n, em_sums *out);
void em_sums_release(em_sums *sums);

/* A sum of n numbers, set to zero, which uses the memory of `whole`. A sum of one part needs no
 * bins. Local. */
em_sums em_sums_begin(const em_sums *whole, int64_t n, bool is_one);

/* Writes the sums over all shards (grid NULL: over this one) to s->part. If one shard has failed,
 * all of them fail. Collective over the ranks of a group. */
em_status em_sums_end(const em_sums *s, const em_grid *grid, em_status status);

/* What em_sums_end leaves where all data are one part, on one rank. */
em_status em_sums_of_one(const em_sums *s, em_status status);
