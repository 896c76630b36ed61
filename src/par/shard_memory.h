/* Memory that the shards of a group share, where they are on one node. */
#pragma once

#include "par/grid.h"

/* So many zeroed bytes, which all shards of the group write and read. NULL for all of them: they
 * are not on one node, or are one, or there is no such memory. Freed by em_mapped_release
 * (par/mapped.h). Collective over the shard ranks. */
void *em_shard_memory(const em_grid *grid, int64_t bytes);
