#include "run/loop/warmup_modes.h"

#include "base/memory.h"
#include "diagnostics/limits.h"
#include "par/world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The largest numbers of draws of a chain, and of numbers of a draw. */
enum { MOST_DRAWS = 128, MOST_NUMBERS = EM_MODE_SEARCH_MOST_DIM };

struct em_warmup_draws {
    em_owner memory; /* of its arrays */
    em_grid *grid;
    int64_t n_local, dim, width, stride; /* width numbers of each position, in rows of stride */
    int64_t count, every;                /* draws so far, each of `every` iterations the last */
    double *draw;                        /* [n_local][MOST_DRAWS][stride] */
};

em_status em_warmup_draws_create(em_grid *grid, int64_t dim, em_warmup_draws **out)
{
    em_status status = em_allocate(1, sizeof **out, out);
    em_warmup_draws *draws = *out;

    if (status)
        return status;
    draws->grid = grid;
    draws->n_local = em_grid_n_local_chain(grid);
    draws->dim = dim;
    draws->width = dim < MOST_NUMBERS ? dim : MOST_NUMBERS;
    draws->stride = em_stride(draws->width);
    draws->every = 1;
    return em_own_all(&draws->memory,
                      EM_ARRAY(draws->draw, draws->n_local * MOST_DRAWS * draws->stride));
}

static double *draw_of(const em_warmup_draws *draws, int64_t c, int64_t i)
{
    return draws->draw + (c * MOST_DRAWS + i) * draws->stride;
}

/* Removes every second draw. */
static void thin(em_warmup_draws *draws)
{
    for (int64_t c = 0; c < draws->n_local; c++)
        for (int64_t i = 0; i < MOST_DRAWS / 2; i++)
            memcpy(draw_of(draws, c, i), draw_of(draws, c, 2 * i + 1),
                   (size_t)draws->stride * sizeof *draws->draw);
    draws->count = MOST_DRAWS / 2;
    draws->every *= 2;
}

void em_warmup_draws_take(em_warmup_draws *draws, const em_block *block, int64_t iteration)
{
    if ((iteration + 1) % draws->every != 0)
        return;
    if (draws->count == MOST_DRAWS)
        thin(draws);
    if ((iteration + 1) % draws->every != 0)
        return;
    for (int64_t c = 0; c < draws->n_local; c++)
        memcpy(draw_of(draws, c, draws->count), block->theta + c * block->stride,
               (size_t)draws->width * sizeof *draws->draw);
    draws->count++;
}

/* ---------------------------------------------------------------- modes in warmup draws */

/* Finds clusters of chains that do not overlap in some number. Collective. */
static em_status find_clusters(const em_warmup_draws *draws, em_modes *out)
{
    const int64_t n = draws->count - draws->count / 2, n_chain = em_grid_n_chain(draws->grid);
    EM_SCOPED_BY(em_release_owner) em_mode_finder *finder = NULL;
    EM_SCOPED double *own = NULL, *all = NULL;
    em_status status =
        em_allocate_all(EM_ARRAY(own, draws->n_local * n), EM_ARRAY(all, n_chain * n));

    status = em_agree(status ? status : em_mode_finder_create(n_chain, n, &finder));
    for (int64_t k = 0; !status && k < draws->width; k++) {
        for (int64_t c = 0; c < draws->n_local; c++)
            for (int64_t i = 0; i < n; i++)
                own[c * n + i] = draw_of(draws, c, draws->count / 2 + i)[k];
        status = em_grid_gather_chains(draws->grid, n, own, all);
        if (!status)
            em_mode_finder_examine(finder, all);
    }
    return status ? status : em_agree(em_mode_finder_count(finder, out));
}

/* Finds modes of the search that have no draws nearby. Collective. */
static em_status find_missed(const em_warmup_draws *draws, em_mode_search *search,
                             em_posterior *posterior, double *log_mass)
{
    const int64_t first = draws->count / 2, n = draws->count - first;
    em_mode_findings found = {.log_mass = NAN};
    EM_SCOPED double *theta = NULL;
    em_status status =
        em_agree(em_allocate(draws->n_local * n * draws->stride, sizeof *theta, &theta));

    for (int64_t c = 0; !status && c < draws->n_local; c++)
        memcpy(theta + c * n * draws->stride, draw_of(draws, c, first),
               (size_t)(n * draws->stride) * sizeof *theta);
    status = status ? status : em_mode_search_judge(search, posterior, n, theta, &found);
    *log_mass = found.log_mass;
    return status;
}

em_status em_warmup_draws_find_modes(const em_warmup_draws *draws, em_mode_search *search,
                                     em_posterior *posterior, em_warmup_modes *out)
{

    *out = (em_warmup_modes){.log_mass = NAN};
    if (draws->count < 2)
        return EM_OK;
    em_status status = find_clusters(draws, &out->modes);
    if (!status && search && draws->dim == draws->width)
        status = find_missed(draws, search, posterior, &out->log_mass);
    return status;
}

em_status em_warmup_draws_moments(const em_warmup_draws *draws, const em_noncentring *map,
                                  double *mean, double *variance, bool *known)
{
    const int64_t n = draws->width, first = draws->count / 2, size = 2 * n;
    const double total = (double)(em_grid_n_chain(draws->grid) * (draws->count - first));
    EM_SCOPED double *own = NULL, *sum = NULL, *x = NULL;

    *known = draws->dim == n && draws->count > 1;
    if (!*known)
        return EM_OK;
    em_status status = em_agree(
        em_allocate_all(EM_ARRAY(own, draws->n_local * size), EM_ARRAY(sum, size), EM_ARRAY(x, n)));
    for (int64_t c = 0; !status && c < draws->n_local; c++)
        for (int64_t i = first; i < draws->count; i++) {
            memcpy(x, draw_of(draws, c, i), (size_t)n * sizeof *x);
            if (map)
                em_noncentring_from_model(map, x, NULL);
            for (int64_t k = 0; k < n; k++) {
                own[c * size + k] += x[k];
                own[c * size + n + k] += x[k] * x[k];
            }
        }
    status = status ? status : em_grid_sum_chains(draws->grid, size, own, sum);
    for (int64_t k = 0; !status && k < n; k++) {
        mean[k] = sum[k] / total;
        variance[k] = sum[n + k] / total - mean[k] * mean[k];
        *known &= variance[k] > 1e-12 * mean[k] * mean[k] && isfinite(variance[k]);
    }
    return status;
}

bool em_warmup_modes_several(const em_warmup_modes *found)
{
    return found->modes.count > 1 || found->log_mass > EM_MISSED_LOG_MASS_LIMIT;
}

void em_warmup_modes_describe(const em_warmup_modes *found, size_t bytes, char *text)
{
    if (found->modes.count > 1)
        em_modes_describe(&found->modes, bytes, text);
    else
        snprintf(text, bytes, "a mode of %.2g times the mass that no chain is in",
                 exp(found->log_mass));
}

/* ---------------------------------------------------------------- checkpoints */

em_status em_warmup_draws_visit(em_warmup_draws *draws, const em_visitor *visitor)
{
    double x[] = {(double)draws->count, (double)draws->every};
    em_status status = visitor->shared(visitor->context, "warmup_draws_of", 2, x);

    if (!status && !(x[0] >= 0 && x[0] <= MOST_DRAWS && x[1] >= 1))
        status = em_fail(EM_EDATA, "a checkpoint has %g draws of warmup, expected 0 to %d", x[0],
                         MOST_DRAWS);
    draws->count = (int64_t)x[0];
    draws->every = (int64_t)x[1];
    return status ? status
                  : visitor->chains(visitor->context, "warmup_draws", MOST_DRAWS * draws->stride,
                                    draws->draw);
}
