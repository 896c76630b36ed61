/* Assigns the observations of the data to the shards. */
#pragma once

#include "emass/model.h"

/* The share of shard `shard` of `n_shard` in `total` observations: a contiguous range, in the order
 * of the shards, which may be empty. A share is made of whole parts, and a part of whole tiles. The
 * size of a part depends only on `total` and `tile`: 4 to 16 tiles, so that there are 16 parts if
 * possible, or more tiles if there would be more than 512 parts. Local. */
em_share em_shard_rows(int64_t total, int64_t tile, int64_t shard, int64_t n_shard);

/* Sets a number for each observation to -0.0, so that the sum over shards takes those that other
 * shards write; returns the place of those of this shard. */
double *em_shard_clear(const em_share *rows, double *out);
