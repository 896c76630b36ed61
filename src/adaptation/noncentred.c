/*
 * Non-centred coordinates in the engine. The first map is that of the priors that are proved at
 * random positions near the starts. At the end of each window of the initial phase the engine
 * searches the window's draws for a map (noncentring/noncentring_search.h). Log densities in the
 * new coordinates tell which chains are outlying, and the mass is learned from the draws of the
 * other chains in these coordinates. A step transforms the block and transforms it back, so all
 * other parts of a run see the model's coordinates. Outlying chains stay in the model's
 * coordinates, except where all of the map is proved: with the first one, and with more than
 * EM_MOST_SEARCHED parameters.
 *
 * The search uses the draws of all chains, because in the model's coordinates the log density of a
 * funnel depends on the position in the funnel. For Neal's funnel in 100 dimensions its standard
 * deviation is 149, and the chains that were outlying by it were those that show the funnel.
 */
#include "adaptation/adaptation_internal.h"
#include "adaptation/noncentring/noncentring_search.h"
#include "adaptation/noncentring/shared_gradients.h"
#include "adaptation/noncentring/tail_fit.h"
#include "adaptation/prior_proofs/draw_columns.h"
#include "base/memory.h"
#include "par/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* If the set of non-centred parameters changes after this iteration of warmup, the initial phase is
 * not prolonged. */
enum { LATEST_CHANGE = 200 };

em_status em_noncentred_create(em_adapt *adapt)
{
    const int64_t panel = adapt->n_local_chain * adapt->stride;

    if (adapt->options->noncentring == EM_NONCENTRING_OFF || !adapt->initial || !adapt->shares ||
        !adapt->keeps_draws)
        return EM_OK;
    em_status status = em_own_all(&adapt->memory, EM_ARRAY(adapt->noncentred, 1));
    if (status)
        return status;
    em_noncentred *own = adapt->noncentred;
    status = em_noncentring_create(adapt->dim, &own->map);
    status = status ? status : em_allocate_all(EM_ARRAY(own->found, adapt->dim));
    return status ? status
                  : em_own_all(&adapt->memory, EM_ARRAY(own->prior, adapt->dim),
                               EM_ARRAY(own->theta, panel), EM_ARRAY(own->gradient, panel),
                               EM_ARRAY(own->from, panel),
                               EM_ARRAY(own->log_density, adapt->n_local_chain),
                               EM_ARRAY(own->stays, adapt->n_chain),
                               EM_ARRAY(own->row, 2 * adapt->dim));
}

const em_noncentring *em_adapt_noncentring(const em_adapt *adapt)
{
    return em_is_noncentred(adapt) ? &adapt->noncentred->map : NULL;
}

/* ---------------------------------------------------------------- learning */

em_status em_exchange_noncentring(em_adapt *adapt)
{
    em_noncentred *own = adapt->noncentred;
    em_noncentring_row *const found = own->found;

    own->found = own->map.row;
    own->map.row = found;
    const em_status status = em_noncentring_set(&own->map, own->map.row);
    em_set_target_accept(adapt);
    return status;
}

/* Counts n gradients that no chain has computed: shares of all chains, whatever their ranks. */
static void count_shared(em_adapt *adapt, int64_t n)
{
    for (int64_t c = 0; c < adapt->n_local_chain; c++) {
        const int64_t chain = adapt->first_chain + c;
        adapt->gradients[c] += (double)(em_partition_first(n, adapt->n_chain, chain + 1) -
                                        em_partition_first(n, adapt->n_chain, chain));
    }
}

em_status em_learn_first_map(em_adapt *adapt, em_posterior *posterior)
{
    static const double spread = 0.6;
    em_noncentred *own = adapt->noncentred;
    int64_t n = 0;

    if (!own || adapt->dim > EM_MOST_SEARCHED)
        return EM_OK;
    const em_random_positions positions = {adapt->pools->centre, own->row, adapt->seed, 0};
    for (int64_t i = 0; i < adapt->dim; i++)
        own->row[i] = spread;
    em_status status = em_prove_priors_at(posterior, adapt->grid, adapt->dim, &positions,
                                          own->prior, own->found, &n);
    count_shared(adapt, n);
    status = status ? status : em_exchange_noncentring(adapt);
    own->is_first = !status && em_is_noncentred(adapt);
    return status;
}

/* Fits the first map anew where the draws of a window are, because the precisions of data near the
 * starts do not hold there. Outlying chains do not tell where that is. */
static em_status refit_first_map(em_adapt *adapt, em_posterior *posterior)
{
    static const double widest = 1;
    em_noncentred *own = adapt->noncentred;
    const int64_t dim = adapt->dim;
    double *mean = own->row, *sd = own->row + dim;
    const em_random_positions positions = {mean, sd, adapt->seed, adapt->initial->window};
    em_samples samples = {0, NULL};
    em_status status = em_window_gather(&adapt->window, adapt->grid, adapt->outlying, &samples);
    int64_t n = 0;

    for (int64_t i = 0; samples.n > 0 && i < dim; i++) {
        em_sample_moments(dim, &samples, i, &mean[i], &sd[i]);
        sd[i] = fmin(sd[i], widest);
    }
    const bool has_draws = samples.n > 0;
    em_release(&samples.row);
    if (status || !has_draws)
        return status;
    status = em_map_priors_at(posterior, adapt->grid, dim, &positions, own->prior, own->found, &n);
    count_shared(adapt, n);
    return status ? status : em_exchange_noncentring(adapt);
}

void em_map_first_variances(const em_adapt *adapt, double *variance)
{
    const em_noncentred *own = adapt->noncentred;

    if (!em_is_noncentred(adapt))
        return;
    const em_noncentring *map = &own->map;
    memcpy(own->row, adapt->pools->centre, (size_t)adapt->dim * sizeof *own->row);
    em_noncentring_from_model(map, own->row, map->at);
    for (int64_t n = 0; n < map->n_child; n++)
        variance[map->child[n]] /= map->at[n].scale * map->at[n].scale;
}

/* Rank 0 searches and broadcasts, so that ranks on different processor types hold the same bits. */
static em_status search_together(em_adapt *adapt, em_posterior *posterior,
                                 const em_samples *samples, bool had_tails, int64_t *n_evaluated)
{
    em_noncentred *own = adapt->noncentred;
    int64_t n_child;
    em_status status = em_prove_priors_together(posterior, adapt->grid, adapt->dim, samples, true,
                                                own->prior, n_evaluated);

    if (!status && em_world_rank() == 0) {
        status = em_noncentring_search(adapt->dim, samples, own->prior, true, own->found, &n_child);
        status = status ? status : em_tail_fit(adapt->dim, samples, had_tails, own->found);
    }
    status = em_agree(status);
    if (!status)
        em_broadcast(own->found, (size_t)adapt->dim * sizeof *own->found);
    return status;
}

/* A map of other parameters changes the regions that chains can reach, so the test for stationarity
 * starts again. It does so only during the first iterations, because draws may never determine the
 * set of parameters. */
em_status em_learn_noncentring(em_adapt *adapt, em_posterior *posterior, bool *is_other)
{
    em_noncentred *own = adapt->noncentred;
    const em_noncentring_counts was = em_noncentring_count(&own->map);
    const int64_t n_was = was.scaled + was.curved;
    em_samples samples = {0, NULL};
    int64_t n_evaluated = 0;
    em_status status = em_window_gather(&adapt->window, adapt->grid, NULL, &samples);

    *is_other = false;
    if (!status && own->is_first != 0 && !em_suffices_for_noncentring(adapt->dim, samples.n)) {
        em_release(&samples.row);
        return refit_first_map(adapt, posterior);
    }
    if (!status && own->is_first != 0)
        em_forget_narrow_scales(adapt->dim, &samples, own->prior);
    own->is_first = 0;
    if (!status)
        status = adapt->dim > EM_MOST_SEARCHED
                     ? em_map_many_together(posterior, adapt->grid, adapt->dim, &samples,
                                            own->prior, own->found, &n_evaluated)
                     : search_together(adapt, posterior, &samples, was.tailed > 0, &n_evaluated);
    count_shared(adapt, n_evaluated);
    em_release(&samples.row);
    status = em_agree(status);
    status = status ? status : em_exchange_noncentring(adapt);
    if (status)
        return status;
    const em_noncentring_counts now = em_noncentring_count(&own->map);
    *is_other = adapt->initial->window < LATEST_CHANGE &&
                llabs(now.scaled + now.curved - n_was) > n_was / 8;
    return status;
}

void em_noncentred_log_densities(const em_adapt *adapt, int64_t c, int64_t first, double *history)
{
    const int64_t number = adapt->first_chain + c, n = adapt->initial->window - first;
    const double *own = adapt->initial->history + c * adapt->plan->initial + first;

    memcpy(history, own, (size_t)n * sizeof *own);
    if (!em_has_mapped_densities(adapt))
        return;
    double *z = adapt->noncentred->row;
    for (int64_t t = 0; t < n; t++)
        history[t] = NAN;
    for (int64_t slot = 0; slot < adapt->window.n_slot; slot++) {
        const double *row = em_window_sample(&adapt->window, adapt->grid, number, slot);
        const int64_t t = (int64_t)adapt->window.iteration[slot] - first;
        if (!row || t < 0)
            continue;
        memcpy(z, row, (size_t)adapt->dim * sizeof *z);
        history[t] = own[t] + em_noncentring_from_model(&adapt->noncentred->map, z, NULL);
    }
}

em_status em_adapt_begin_noncentred(em_adapt *adapt, const em_noncentring_row *row)
{
    if (adapt->noncentred) {
        memcpy(adapt->noncentred->found, row, (size_t)adapt->dim * sizeof *row);
        return em_exchange_noncentring(adapt);
    }
    return em_fail(EM_ECONFIG, "mass.from is a run in non-centred coordinates, which this "
                               "one cannot have: expected mass.noncentring: auto, and "
                               "sampler hmc, nuts or walnuts with a shared mass");
}

/* ---------------------------------------------------------------- coordinates */

static void copy(int64_t n, const double *from, double *to)
{
    memcpy(to, from, (size_t)n * sizeof *to);
}

/* A position and its gradient [dim] in these coordinates, in the work space. */
static const double *transform(const em_adapt *adapt, const double *theta, const double *gradient)
{
    const em_noncentring *map = &adapt->noncentred->map;
    double *out = adapt->noncentred->row;

    copy(adapt->dim, theta, out);
    copy(adapt->dim, gradient, out + adapt->dim);
    em_noncentring_from_model(map, out, map->at);
    em_noncentring_pull(map, out, map->at, out + adapt->dim);
    return out;
}

const double *em_noncentred_draw(const em_adapt *adapt, const double *row)
{
    return em_is_noncentred(adapt) ? transform(adapt, row, row + adapt->dim) : row;
}

const double *em_noncentred_state(const em_adapt *adapt, const em_block *block, int64_t c)
{
    if (!em_is_noncentred(adapt) || adapt->noncentred->stays[adapt->first_chain + c])
        return NULL;
    return transform(adapt, block->theta + c * block->stride, block->gradient + c * block->stride);
}

/* Stores the block, and transforms it to the coordinates of the map. */
static void enter(const em_adapt *adapt, em_block *block)
{
    const em_noncentred *own = adapt->noncentred;
    const int64_t stride = block->stride, panel = block->n_chain * stride;

    copy(panel, block->theta, own->from);
    copy(panel, block->gradient, own->gradient);
    copy(block->n_chain, block->log_density, own->log_density);
    for (int64_t c = 0; c < block->n_chain; c++) {
        double *theta = block->theta + c * stride;
        if (own->stays[block->chain[c]])
            continue;
        block->log_density[c] += em_noncentring_from_model(&own->map, theta, own->map.at);
        em_noncentring_pull(&own->map, theta, own->map.at, block->gradient + c * stride);
    }
    copy(panel, block->theta, own->theta);
}

/* Transforms the block back to the model's coordinates. A chain that has not moved gets its old
 * state, bit for bit. */
static void leave(const em_adapt *adapt, em_block *block)
{
    const em_noncentred *own = adapt->noncentred;
    const int64_t stride = block->stride, dim = adapt->dim;

    for (int64_t c = 0; c < block->n_chain; c++) {
        double *theta = block->theta + c * stride, *z = own->theta + c * stride;
        if (own->stays[block->chain[c]])
            continue;
        if (memcmp(theta, z, (size_t)dim * sizeof *z) == 0) {
            copy(dim, own->from + c * stride, theta);
            copy(dim, own->gradient + c * stride, block->gradient + c * stride);
            block->log_density[c] = own->log_density[c];
        } else {
            copy(dim, theta, z);
            block->log_density[c] -= em_noncentring_to_model(&own->map, theta, own->map.at);
            em_noncentring_push(&own->map, z, own->map.at, block->gradient + c * stride);
        }
        block->stat[EM_STAT_LP][c] = block->log_density[c];
    }
}

/* A step of the sampler or, unless acceptance is NULL, a probe. */
static em_status act(em_sampler *sampler, const em_step_context *context, em_block *block,
                     double *acceptance)
{
    return acceptance ? sampler->ops->probe(sampler, context, block, acceptance)
                      : sampler->ops->step(sampler, context, block);
}

em_status em_noncentred_posterior(em_adapt *adapt, em_posterior *posterior, em_posterior **out)
{
    em_noncentred *own = adapt->noncentred;
    em_status status = EM_OK;

    *out = posterior;
    if (!em_is_noncentred(adapt))
        return EM_OK;
    if (!own->posterior)
        status = em_posterior_create_noncentred(posterior, adapt->n_local_chain, adapt->dim,
                                                &own->map, own->stays, &own->posterior);
    *out = own->posterior;
    return status;
}

/* Whether all rows of the map are proved, so that they hold wherever a chain is. */
static bool is_proved(const em_adapt *adapt)
{
    return adapt->noncentred->is_first != 0 || adapt->dim > EM_MOST_SEARCHED;
}

static em_status act_in_coordinates(em_adapt *adapt, em_sampler *sampler,
                                    const em_step_context *context, em_block *block,
                                    double *acceptance)
{
    em_noncentred *own = adapt->noncentred;
    em_step_context inner = *context;
    em_status status = em_noncentred_posterior(adapt, context->posterior, &inner.posterior);

    if (status || !em_is_noncentred(adapt))
        return status ? status : act(sampler, context, block, acceptance);
    for (int64_t c = 0; c < adapt->n_chain; c++)
        own->stays[c] = adapt->outlying[c] && !is_proved(adapt);
    enter(adapt, block);
    status = act(sampler, &inner, block, acceptance);
    leave(adapt, block);
    return status;
}

em_status em_adapt_step(em_adapt *adapt, em_sampler *sampler, const em_step_context *context,
                        em_block *block)
{
    return act_in_coordinates(adapt, sampler, context, block, NULL);
}

em_status em_adapt_probe(em_adapt *adapt, em_sampler *sampler, const em_step_context *context,
                         em_block *block, double *acceptance)
{
    return act_in_coordinates(adapt, sampler, context, block, acceptance);
}

em_status em_noncentred_visit(em_adapt *adapt, const em_visitor *visitor)
{
    em_noncentred *own = adapt->noncentred;

    if (!own)
        return EM_OK;
    copy(adapt->dim * EM_NONCENTRING_NUMBERS, (const double *)own->map.row, (double *)own->found);
    em_status status = visitor->shared(visitor->context, "noncentring",
                                       adapt->dim * EM_NONCENTRING_NUMBERS, (double *)own->found);
    status = status ? status
                    : visitor->shared(visitor->context, "noncentring_priors",
                                      adapt->dim * EM_NORMAL_PRIOR_NUMBERS, (double *)own->prior);
    status = status ? status
                    : visitor->shared(visitor->context, "noncentring_is_first", 1, &own->is_first);
    return status || !visitor->restores ? status : em_exchange_noncentring(adapt);
}
