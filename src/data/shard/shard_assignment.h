/* Assigns the observations of the data to the shards. */
#pragma once

#include "emass/model.h"

/* The share of shard `shard` of `n_shard` in `total` observations, dealt in whole parts, which are
 * whole tiles: contiguous, in the order of the shards, and perhaps empty. What a part is depends on
 * `total` and `tile` alone: 4 to 16 tiles, so that there are 16 parts if there can be; more of them
 * in a part where there would be more than 512 parts. Local. */
em_share em_deal_rows(int64_t total, int64_t tile, int64_t shard, int64_t n_shard);
