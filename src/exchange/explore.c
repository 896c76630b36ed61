/* Chains that have arrived look whether most of the mass is elsewhere (exchange/scout.h). */
#include "base/memory.h"
#include "exchange/engine.h"
#include "exchange/scout.h"
#include "math/linalg.h"
#include "math/rng.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

/* A mode is believed in when its peak is above the log densities of the chains by what the gate
 * asks for besides the height of a peak, and there is a thousand times the mass: its log, at least.
 */
static const double enough = 6.9;

void em_adapt_explore(em_adapt *adapt, em_start_point *point, void *context)
{
    adapt->point = point;
    adapt->point_context = context;
}

/* Points that a climb may begin at: the best of these. Local. */
static em_status choose_point(em_adapt *adapt, em_posterior *posterior, int64_t c, int64_t scout,
                              double *trial, em_peak *best)
{
    enum { N_POINT = 4, FIRST = 1 << 20 };
    const int64_t chain = em_grid_first_chain(adapt->grid) + c;
    double *gradient = trial + adapt->stride;
    em_status status = EM_OK;

    best->log_density = -INFINITY;
    for (int64_t k = 0; status >= 0 && k < N_POINT; k++) {
        double value = NAN;
        status = adapt->point(adapt->point_context, chain, (uint64_t)(FIRST + scout * N_POINT + k),
                              trial);
        if (!status)
            status = em_posterior_evaluate(posterior, &(em_query){.n_chain = 1,
                                                                  .stride = adapt->stride,
                                                                  .chain = &chain,
                                                                  .theta = trial,
                                                                  .log_density = &value,
                                                                  .gradient = gradient});
        em_adapt_count_gradients(adapt, c, 1);
        if (status || !(value > best->log_density))
            continue;
        memcpy(best->theta, trial, (size_t)adapt->stride * sizeof *trial);
        best->log_density = value;
    }
    return status < 0 ? status : EM_OK;
}

/* The best peak that a chain of this rank finds: into `best`, and room for another. Local. */
static em_status scout(em_adapt *adapt, em_posterior *posterior, int64_t c, double least,
                       double *trial, em_peak *one, em_peak *best)
{
    const int64_t n_chain = em_grid_n_chain(adapt->grid);
    em_status status = EM_OK;

    for (int64_t k = 0; !status && k < (EM_SCOUTS + n_chain - 1) / n_chain; k++) {
        status = choose_point(adapt, posterior, c, k, trial, one);
        if (!status && isfinite(one->log_density)) {
            status = em_climb_to_peak(posterior, adapt->pools->mass,
                                      em_grid_first_chain(adapt->grid) + c, least, one);
            em_adapt_count_gradients(adapt, c, one->gradients);
        } else
            one->evidence = -INFINITY;
        if (!status && one->evidence > best->evidence) {
            const em_peak other = *best;
            *best = *one;
            *one = other;
        }
    }
    return status;
}

/* The peak of the most mass that all chains find, on every rank, with the evidence of what this
 * rank found itself replaced by that of all. Collective. */
static em_status share_best(em_adapt *adapt, const double *evidence, em_peak *best)
{
    const int64_t n_chain = em_grid_n_chain(adapt->grid), dim = adapt->dim, n = dim + dim * dim;
    const int64_t first = em_grid_first_chain(adapt->grid);
    int64_t winner = 0;
    double *all = NULL;
    em_status status = em_agree(em_allocate(n_chain + n, sizeof *all, &all));

    if (!status)
        status = em_grid_gather_chains(adapt->grid, 1, evidence, all);
    for (int64_t c = 1; !status && c < n_chain; c++)
        winner = all[c] > all[winner] ? c : winner;
    if (!status && isfinite(all[winner])) {
        double *row = all + n_chain;
        status = em_grid_begin_sum(adapt->grid, n);
        memcpy(row, best->theta, (size_t)dim * sizeof *row);
        memcpy(row + dim, best->covariance, (size_t)(dim * dim) * sizeof *row);
        if (!status && winner >= first && winner < first + adapt->n_local_chain)
            em_grid_add_to_sum(adapt->grid, n, row);
        if (!status)
            em_grid_end_sum(adapt->grid, n, row);
        memcpy(best->theta, row, (size_t)dim * sizeof *row);
        memcpy(best->covariance, row + dim, (size_t)(dim * dim) * sizeof *row);
    }
    best->evidence = status ? -INFINITY : all[winner];
    em_release(&all);
    return status;
}

/* All chains go to it, as far from it as its curvature lets them be: what they were is forgotten.
 * Local, but for the target. */
static em_status settle_around(em_adapt *adapt, em_posterior *posterior, em_block *block,
                               const em_peak *peak, int64_t done)
{
    const int64_t dim = adapt->dim;
    double *factor = NULL;
    em_status status = em_allocate(em_stride(dim * dim) + adapt->stride, sizeof *factor, &factor);

    if (status)
        return status;
    double *z = factor + em_stride(dim * dim);
    memcpy(factor, peak->covariance, (size_t)(dim * dim) * sizeof *factor);
    status = em_cholesky(dim, factor, dim);
    for (int64_t c = 0; !status && c < block->n_chain; c++) {
        double *theta = block->theta + c * block->stride;
        em_normals(
            &(em_stream){adapt->seed, (uint64_t)block->chain[c], (uint64_t)done, EM_RNG_SCOUT}, dim,
            z);
        memcpy(theta, peak->theta, (size_t)dim * sizeof *theta);
        for (int64_t i = 0; i < dim; i++)
            for (int64_t j = 0; j <= i; j++)
                theta[i] += factor[i * dim + j] * z[j];
        em_forget_chain(adapt, c, done);
        em_adapt_count_gradients(adapt, c, 1);
    }
    if (!status)
        status = em_block_evaluate(posterior, block);
    for (int64_t c = 0; status >= 0 && c < block->n_chain; c++)
        if (!isfinite(block->log_density[c]))
            memcpy(block->theta + c * block->stride, peak->theta, (size_t)dim * sizeof *factor);
    if (status >= 0)
        status = em_block_evaluate(posterior, block);
    em_release(&factor);
    return status < 0 ? status : EM_OK;
}

/* The mass that belongs to its curvature, and a centre there. Local. */
static em_status learn_from_peak(em_adapt *adapt, const em_peak *peak)
{
    const int64_t dim = adapt->dim;
    em_mass *mass = NULL;
    em_status status;

    if (adapt->form.ops == &em_mass_dense) {
        status = em_mass_of(&adapt->form, peak->covariance, &mass);
    } else {
        for (int64_t i = 0; i < dim; i++)
            adapt->sample[i] = peak->covariance[i * dim + i];
        status = em_mass_of_diagonal(&adapt->form, adapt->sample, &mass);
    }
    if (status)
        return status < 0 ? status : EM_OK;
    em_mass_destroy(&adapt->pools->mass);
    adapt->pools->mass = mass;
    memcpy(adapt->pools->centre, peak->theta, (size_t)dim * sizeof(double));
    em_publish_to_chains(adapt);
    return EM_OK;
}

static em_status find(em_adapt *adapt, em_posterior *posterior, const em_block *block, double least,
                      double *room, double *evidence, em_peak *best)
{
    const int64_t size = adapt->stride + em_stride(adapt->dim * adapt->dim);
    em_peak one = {.theta = room + 2 * adapt->stride + size};
    em_status status = EM_OK;

    best->theta = room + 2 * adapt->stride;
    best->covariance = best->theta + adapt->stride;
    best->evidence = -INFINITY;
    one.covariance = one.theta + adapt->stride;
    for (int64_t c = 0; c < block->n_chain; c++) {
        evidence[c] = -INFINITY;
        if (!status && block->chain[c] < EM_SCOUTING_CHAINS) {
            const double before = best->evidence;
            status = scout(adapt, posterior, c, least, room, &one, best);
            if (best->evidence > before)
                evidence[c] = best->evidence;
        }
    }
    return status;
}

em_status em_explore(em_adapt *adapt, em_sampler *sampler, em_posterior *posterior, em_block *block,
                     const em_stretch *stretch, int64_t done, bool *found)
{
    const int64_t n_chain = em_grid_n_chain(adapt->grid), dim = adapt->dim;
    const double height = 0.5 * (double)dim;
    const int64_t size = adapt->stride + em_stride(dim * dim);
    em_peak best = {.theta = NULL};
    double *room = NULL, *evidence = NULL, mean = 0;
    em_status status;

    *found = false;
    adapt->course.explored = 1;
    for (int64_t c = 0; c < n_chain; c++)
        mean += stretch[c].mean / (double)n_chain;
    status = em_allocate(2 * adapt->stride + 2 * size, sizeof *room, &room);
    if (!status)
        status = em_allocate(adapt->n_local_chain, sizeof *evidence, &evidence);
    status = em_agree(status);
    if (!status)
        status = em_agree(find(adapt, posterior, block,
                               mean + height + 4 * (sqrt(0.5 * (double)dim) + 2), room, evidence,
                               &best));
    if (!status)
        status = share_best(adapt, evidence, &best);
    const em_mass *mass = adapt->pools->mass;
    *found = !status && best.evidence > mean + height + mass->ops->log_det(mass) / 2 + enough;
    if (*found) {
        status = settle_around(adapt, posterior, block, &best, done);
        if (!status)
            status = learn_from_peak(adapt, &best);
        status = em_agree(status);
        if (!status)
            status = em_search_step_size(adapt, sampler, posterior, block, done);
        adapt->course.n_arrived = 0;
        adapt->course.moved = done;
        adapt->course.deepest = em_first_depth(&adapt->course);
    }
    em_release(&room);
    em_release(&evidence);
    return status;
}
