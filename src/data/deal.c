#include "data/deal.h"

#include "par/grid.h"

em_share em_deal_rows(int64_t total, int64_t shard, int64_t n_shard)
{
    const int64_t first = em_deal_first(total, n_shard, shard);

    return (em_share){total, first, em_deal_first(total, n_shard, shard + 1) - first};
}
