/* Memory that the shards of a group share if they are on one node. */
#pragma once

#include "par/grid.h"

/* Allocates `bytes` bytes, set to zero, which all shards of the group write and read. NULL on all
 * of them if they are not on one node, there is only one shard, or there is no shared memory. Freed
 * by em_mapped_release (par/mapped.h). Collective over the shard ranks. */
void *em_shard_memory(const em_grid *grid, int64_t bytes);
