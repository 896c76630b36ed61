/* Which observations of the data each shard holds. */
#ifndef EM_DATA_DEAL_H
#define EM_DATA_DEAL_H

#include "emass/model.h"

/* The share of shard `shard` of `n_shard` in `total` observations: shares are contiguous, in the
 * order of the shards, and may be empty. Local. */
em_share em_deal_rows(int64_t total, int64_t shard, int64_t n_shard);

#endif
