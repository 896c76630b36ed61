/* Records the index process: the rung of each copy of a ladder after scans of the draws. To limit
 * its size, it first records every scan, later every second one, and so on. */
#include "base/memory.h"
#include "par/message.h"
#include "par/world.h"
#include "tempering/tempering_internal.h"

/* Removes every second recorded scan. */
static void thin(em_tempering *t)
{
    for (int64_t c = 0; c < t->n_copy; c++)
        for (int64_t i = 0; i < EM_MOST_TIMES / 2; i++)
            t->path[c * EM_MOST_TIMES + i] = t->path[c * EM_MOST_TIMES + 2 * i];
    t->path_every *= 2;
}

void em_path_take(em_tempering *t, int64_t scan)
{
    if (scan == EM_MOST_TIMES * t->path_every)
        thin(t);
    if (scan % t->path_every != 0)
        return;
    for (int64_t c = 0; c < t->n_copy; c++)
        t->path[c * EM_MOST_TIMES + scan / t->path_every] = (double)t->copy[c].rung;
}

em_status em_path_gather(em_tempering *t, int64_t n_scan, em_tempering_findings *out)
{
    const int64_t first = em_grid_first_chain(t->copies);
    EM_SCOPED int64_t *rung = NULL;

    out->n_path_ladder = t->n_ladder < EM_MOST_PATH_LADDERS ? t->n_ladder : EM_MOST_PATH_LADDERS;
    out->path_every = t->path_every;
    out->n_time = (n_scan + t->path_every - 1) / t->path_every;
    const int64_t n_row = out->n_path_ladder * t->ladder.n_rung, n = n_row * out->n_time;
    const em_status status = em_agree(em_allocate_all(EM_ARRAY(rung, n), EM_ARRAY(out->path, n)));
    for (int64_t c = 0; !status && em_grid_shard(t->copies) == 0 && c < t->n_copy; c++)
        for (int64_t i = 0; first + c < n_row && i < out->n_time; i++)
            rung[(first + c) * out->n_time + i] = (int64_t)t->path[c * EM_MOST_TIMES + i];
    if (!status)
        em_world_sum(n, rung); /* each copy is that of one rank */
    for (int64_t i = 0; !status && i < n; i++)
        out->path[i] = (double)rung[i];
    return status;
}
