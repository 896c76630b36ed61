/* Records the index process: the rung of each copy of a ladder after scans of the draws. To limit
 * its size, it first records every scan, later every second one, and so on. */
#include "base/memory.h"
#include "par/world.h"
#include "tempering/tempering_internal.h"

#include <string.h>

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
    const int64_t n_rung = t->ladder.n_rung;
    double *all = NULL;
    em_status status;

    out->n_path_ladder = t->n_ladder < EM_MOST_PATH_LADDERS ? t->n_ladder : EM_MOST_PATH_LADDERS;
    out->path_every = t->path_every;
    out->n_time = (n_scan + t->path_every - 1) / t->path_every;
    const int64_t n_row = out->n_path_ladder * n_rung;
    status = em_allocate(t->n_ladder * n_rung * EM_MOST_TIMES, sizeof *all, &all);
    if (!status)
        status = em_allocate(n_row * out->n_time, sizeof *out->path, &out->path);
    status = em_agree(status);
    if (!status)
        status = em_grid_gather_chains(t->copies, EM_MOST_TIMES, t->path, all);
    for (int64_t g = 0; !status && g < n_row; g++)
        memcpy(out->path + g * out->n_time, all + g * EM_MOST_TIMES,
               (size_t)out->n_time * sizeof *all);
    em_release(&all);
    return status;
}
