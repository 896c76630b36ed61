#include "data/shard/shard_assignment.h"

#include "math/binned.h"
#include "par/grid.h"

static int64_t divided_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* The number of tiles of a part, so that there are 16 parts or more. Parts are large enough that
 * adding them costs little compared with a gradient (tests/bench/bench_posterior.c). With many rows
 * there are more parts, but at most half as many as a binned sum has terms, because shards add one
 * term each. */
static int64_t tiles_of_a_part(int64_t n_tile)
{
    enum { PARTS = 16, LEAST = 4, MOST = 16, MOST_PARTS = EM_BINNED_TERMS / 2 };
    const int64_t wanted = divided_up(n_tile, PARTS), needed = divided_up(n_tile, MOST_PARTS);
    const int64_t some = wanted < LEAST ? LEAST : wanted < MOST ? wanted : MOST;

    return some > needed ? some : needed;
}

em_share em_shard_rows(int64_t total, int64_t tile, int64_t shard, int64_t n_shard)
{
    const int64_t part = total > 0 ? tile * tiles_of_a_part(divided_up(total, tile)) : tile;
    const int64_t n_part = divided_up(total, part);
    const int64_t first = part * em_partition_first(n_part, n_shard, shard);
    const int64_t end = part * em_partition_first(n_part, n_shard, shard + 1);

    return (em_share){total, part, first < total ? first : total,
                      (end < total ? end : total) - (first < total ? first : total)};
}

double *em_shard_clear(const em_share *rows, double *out)
{
    for (int64_t i = 0; i < rows->total; i++)
        out[i] = -0.0;
    return out + rows->first;
}
