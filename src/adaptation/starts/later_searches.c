/* Searches that follow the first one, or take its place: at the end of warmup and of sampling, and
 * before a tempered run. Each is a search of its own, whose modes the run's search may take over.
 */
#include "adaptation/starts/mode_comparison.h"
#include "base/memory.h"
#include "par/world.h"

#include <string.h>

/* The largest number of gradients of an ascent from known scales. */
enum { MOST_FROM_SCALES = 60 };

/* Where the ascents of a search start, and what is known there. */
typedef struct origin {
    em_grid *grid;         /* the search has the chains of this grid */
    em_start_law *law;     /* further draws */
    void *context;         /* of law */
    const em_block *block; /* first ascents start at its chains; NULL: at draw 0 of `law` */
    const double *scale;   /* [stride] approximates the inverse curvature; NULL: not known */
} origin;

/* Takes over the modes of another search. Collective. Errors: EM_EMEMORY, agreed. */
static em_status take_modes(em_mode_search *search, em_mode_search *from)
{
    em_release(&search->modes);
    em_mode_visits_release(&search->visits);
    search->modes = from->modes;
    search->n_mode = from->n_mode;
    from->modes = NULL;
    em_point_to_modes(search, search->n_mode, true);
    return em_create_visits(search, &search->visits);
}

/* Sets the chains of a block, which stay where they are, to the first points of the ascents. */
static em_status set_points(const origin *at, em_block *points)
{
    em_status status = EM_OK;

    if (at->block)
        memcpy(points->theta, at->block->theta,
               (size_t)(points->n_chain * points->stride) * sizeof *points->theta);
    for (int64_t c = 0; !status && !at->block && c < points->n_chain; c++)
        status = at->law(at->context, points->chain[c], 0, points->theta + c * points->stride);
    return status;
}

/* Makes another search. Adds to gradients [n_local_chain] if it is not NULL. Collective. */
static em_status search_from(const origin *at, int64_t dim, em_posterior *posterior,
                             const em_search_plan *plan, double *gradients, em_mode_search **other)
{
    const int64_t n = em_grid_n_local_chain(at->grid);
    EM_SCOPED_BY(em_block_destroy) em_block *points = NULL;
    EM_SCOPED double *uncounted = NULL;
    em_status status = em_mode_search_create(at->grid, dim, plan, other);

    status = status ? status : em_block_create(em_grid_first_chain(at->grid), n, dim, 0, &points);
    status = status ? status : em_allocate(n, sizeof *uncounted, &uncounted);
    status = status ? status : set_points(at, points);
    status = em_agree(status);
    return status ? status
                  : em_make_ascents(&(em_ascents){.search = *other,
                                                  .posterior = posterior,
                                                  .law = at->law,
                                                  .context = at->context,
                                                  .block = points,
                                                  .chains = at->block,
                                                  .scale = at->scale,
                                                  .most = at->scale ? MOST_FROM_SCALES : 0,
                                                  .gradients = gradients ? gradients : uncounted});
}

em_status em_mode_search_shared(em_mode_search *search, em_posterior *posterior,
                                const em_search_plan *plan, int64_t n_searcher, em_start_law *law,
                                void *context)
{
    EM_SCOPED_BY(em_grid_destroy) em_grid *grid = NULL;
    EM_SCOPED_BY(em_mode_search_destroy) em_mode_search *shared = NULL;
    em_status status = em_grid_create_any(n_searcher, em_grid_n_shard(search->grid), &grid);

    if (!status)
        status = search_from(&(origin){.law = law, .context = context, .grid = grid}, search->dim,
                             posterior, plan, NULL, &shared);
    return status ? status : take_modes(search, shared);
}

em_status em_mode_search_repeat(em_mode_search *search, em_posterior *posterior,
                                const em_search_plan *plan, em_start_law *law, void *context,
                                const em_block *block, const double *scale, double *gradients)
{
    const origin at = {search->grid, law, context, block, scale};
    EM_SCOPED_BY(em_mode_search_destroy) em_mode_search *again = NULL;
    em_status status = search_from(&at, search->dim, posterior, plan, gradients, &again);

    if (!status && again->n_mode > search->n_mode)
        status = take_modes(search, again);
    return status;
}

/* ---------------------------------------------------------------- from steep points */

/* Where the second ascent of a chain starts: its steep point or, if it has none, its position. */
typedef struct steep_law {
    const em_steep_points *points;
    const em_block *block;
    const em_noncentring *map; /* of the points; NULL: none */
} steep_law;

static em_status steep_start(void *of, int64_t chain, uint64_t draw, double *theta)
{
    const steep_law *law = of;
    const int64_t c = chain - law->points->first_chain, stride = law->points->stride;
    const bool has = isfinite(law->points->log_density[c]);

    (void)draw;
    memcpy(theta, (has ? law->points->theta : law->block->theta) + c * stride,
           (size_t)stride * sizeof *theta);
    if (has && law->map)
        em_noncentring_to_model(law->map, theta, NULL);
    return EM_OK;
}

/* The findings of a search if the chains had visited the positions that are kept only. */
static em_status judge_kept(em_mode_search *search, em_posterior *posterior,
                            const em_steep_search *steep, em_mode_findings *out)
{
    const int64_t row = steep->n * search->stride, n_redrawn = out->n_redrawn;
    EM_SCOPED double *theta = NULL;
    em_status status = em_agree(em_allocate_doubles(search->n_local * row, &theta));

    for (int64_t c = 0; !status && c < search->n_local; c++)
        memcpy(theta + c * row, steep->kept + c * steep->most * search->stride,
               (size_t)row * sizeof *theta);
    status = status ? status : em_mode_search_judge(search, posterior, steep->n, theta, out);
    out->n_redrawn = n_redrawn;
    return status;
}

em_status em_mode_search_from_steep(em_mode_search *search, em_posterior *posterior,
                                    const em_noncentring *map, const em_block *block,
                                    const double *scale, em_mode_findings *out)
{
    steep_law law = {&search->steep.points, block, map};
    const origin at = {search->grid, steep_start, &law, block, scale};
    const int64_t n = 2 * em_grid_n_chain(search->grid); /* each chain, and its steep point */
    const em_search_plan plan = {.least = n, .most = n};
    EM_SCOPED_BY(em_mode_search_destroy) em_mode_search *again = NULL;

    if (!em_steep_search_has_points(&search->steep))
        return EM_OK;
    em_status status = search_from(&at, search->dim, posterior, &plan, NULL, &again);
    if (!status && again->n_mode > search->n_mode)
        status = judge_kept(again, posterior, &search->steep, out);
    return status;
}
