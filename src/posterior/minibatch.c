/* Estimates the density from randomly chosen observations. */
#include "base/memory.h"
#include "math/binned.h"
#include "math/rng.h"
#include "posterior/inside.h"

#include <string.h>

/* Makes all numbers distinct (Floyd's sampling): each of the `count` last numbers gets a distinct
 * one of 0 .. last. All subsets of that size are equally likely. */
static void choose_distinct(em_posterior *posterior, const em_stream *stream, int64_t count,
                            int64_t n)
{
    em_uniforms_below(stream, count, (uint64_t)(n - count) + 1, 1, posterior->chosen);
    for (int64_t k = 0; k < count; k++) {
        int64_t row = posterior->chosen[k];
        if (posterior->taken[row / 64] >> (row % 64) & 1)
            row = n - count + k;
        posterior->taken[row / 64] |= UINT64_C(1) << (row % 64);
        posterior->chosen[k] = row;
    }
    for (int64_t k = 0; k < count; k++)
        posterior->taken[posterior->chosen[k] / 64] = 0;
}

/* The number of observations in the minibatch of evaluation number `evaluation`, which starts or
 * continues an epoch. */
static int64_t minibatch_count(const em_minibatch *minibatch, int64_t n, int64_t evaluation)
{
    if (!minibatch->by_epoch)
        return minibatch->size;
    const int64_t batches = em_minibatches_of_epoch(n, minibatch->size);
    const bool is_last = evaluation % batches == batches - 1;

    return is_last ? n - (batches - 1) * minibatch->size : minibatch->size;
}

/* The factor of the likelihood of a minibatch. */
static double scale_of(const em_posterior *posterior, const em_minibatch *minibatch,
                       int64_t evaluation)
{
    const int64_t n = posterior->model->rows.total;

    return (double)n / (double)minibatch_count(minibatch, n, evaluation);
}

/* Chooses the next observations of the epoch. The order is computed on demand and not stored. */
static void choose_next(em_posterior *posterior, const em_stream *stream, int64_t size,
                        int64_t count, int64_t n)
{
    const int64_t batches = em_minibatches_of_epoch(n, size);
    const int64_t epoch = (int64_t)stream->iteration / batches;
    const int64_t first = (int64_t)stream->iteration % batches * size;
    const em_shuffle shuffle =
        em_shuffle_of(&(em_stream){stream->seed, stream->chain, (uint64_t)epoch, EM_RNG_EPOCH}, n);

    for (int64_t k = 0; k < count; k++)
        posterior->chosen[k] = em_shuffle_at(&shuffle, first + k);
}

/* Selects the chosen rows that this shard holds, by local numbers; returns how many. */
static int64_t keep_own(em_posterior *posterior, int64_t count)
{
    const em_share *own = &posterior->model->rows;
    int64_t kept = 0;

    for (int64_t k = 0; k < count; k++) {
        posterior->chosen[kept] = posterior->chosen[k] - own->first;
        kept += posterior->chosen[kept] >= 0 && posterior->chosen[kept] < own->count;
    }
    return kept;
}

/*
 * The minibatch of chain c of the panel: rows of all data, chosen by random numbers of the chain,
 * so that every shard has the whole list and it does not depend on the number of shards. Of them,
 * those on this shard are returned.
 */
static em_rows choose(em_posterior *posterior, const em_minibatch *minibatch, const em_query *query,
                      int64_t c)
{
    const int64_t n = posterior->model->rows.total;
    const int64_t count = minibatch_count(minibatch, n, query->evaluation);
    const em_draw draw = em_query_draw(query, c);
    const em_stream stream = {draw.seed, (uint64_t)draw.chain, (uint64_t)draw.iteration,
                              EM_RNG_MINIBATCH};

    if (minibatch->by_epoch)
        choose_next(posterior, &stream, minibatch->size, count, n);
    else if (minibatch->replacement)
        em_uniforms_below(&stream, count, (uint64_t)n, 0, posterior->chosen);
    else
        choose_distinct(posterior, &stream, count, n);
    return (em_rows){.count =
                         em_grid_n_shard(posterior->grid) == 1 ? count : keep_own(posterior, count),
                     .index = posterior->chosen};
}

/* Sums the minibatches of all chains at once. This is fast, but the order of addition depends on
 * the number of shards, unless the terms are counts. */
static em_status sum_chosen(em_posterior *posterior, em_status status,
                            const em_minibatch *minibatch, const em_query *query)
{
    em_model *model = posterior->model;
    const int64_t n = query->n_chain * query->stride, size = n + query->n_chain;
    const em_status shared = em_posterior_share_sums(posterior);
    double *sum = posterior->likelihood.part;
    const em_query all = em_query_into(query, sum, sum + n);

    if (shared)
        return shared;
    memset(sum, 0, (size_t)size * sizeof *sum);
    for (int64_t c = 0; status >= 0 && c < query->n_chain; c++) {
        em_query one = em_query_panel(&all, c, 1);
        one.rows = choose(posterior, minibatch, query, c);
        if (one.rows.count > 0)
            status = em_posterior_add_likelihood(model, &one);
    }
    return em_posterior_end_counts(posterior, status, &all);
}

/* The estimate of a model that computes it itself; the prior is added on the first shard. */
static em_status add_estimates(em_posterior *posterior, em_status status,
                               const em_minibatch *minibatch, const em_query *query, double scale)
{
    em_model *model = posterior->model;

    for (int64_t c = 0; status >= 0 && c < query->n_chain; c++) {
        em_query one = em_query_panel(query, c, 1);
        one.rows = choose(posterior, minibatch, query, c);
        status = model->ops->minibatch->estimate(model, &one, scale,
                                                 em_grid_shard(posterior->grid) == 0);
    }
    return status < 0 ? status : EM_OK;
}

static em_status estimate_by_model(em_posterior *posterior, const em_minibatch *minibatch,
                                   const em_query *query, double scale)
{
    const int64_t n = query->n_chain * query->stride;
    em_status status = em_posterior_begin(posterior, query->n_chain), shared;

    if (em_grid_n_shard(posterior->grid) == 1)
        return add_estimates(posterior, status, minibatch, query, scale);
    shared = em_posterior_share_sums(posterior);
    if (shared)
        return shared;
    double *sum = posterior->likelihood.part;
    const em_query all = em_query_into(query, sum, sum + n);
    if (posterior->is_partitioned)
        em_posterior_wait(posterior); /* all have moved */
    status = add_estimates(posterior, status, minibatch, &all, scale);
    if (posterior->is_partitioned)
        return em_posterior_end_estimates(posterior, status, query);
    status = em_posterior_end_counts(posterior, status, &all);
    memcpy(query->gradient, sum, (size_t)n * sizeof *sum);
    memcpy(query->log_density, sum + n, (size_t)query->n_chain * sizeof *sum);
    return status;
}

/* Orders the chosen rows by part. Within a part they keep their order, which is the same on any
 * number of shards. */
static void group_by_part(em_posterior *posterior, int64_t count)
{
    const em_share *own = &posterior->model->rows;
    const int64_t n_part = (own->count + own->part - 1) / own->part;
    int64_t *end = posterior->end;

    memset(end, 0, (size_t)(n_part + 1) * sizeof *end);
    for (int64_t k = 0; k < count; k++)
        end[posterior->chosen[k] / own->part + 1]++;
    for (int64_t p = 1; p <= n_part; p++)
        end[p] += end[p - 1]; /* so far, where the next part begins */
    for (int64_t k = 0; k < count; k++)
        posterior->grouped[end[posterior->chosen[k] / own->part]++] = posterior->chosen[k];
}

/* Adds the minibatch of chain c of the panel, part by part. */
static em_status add_chosen_parts(em_posterior *posterior, const em_minibatch *minibatch,
                                  const em_query *query, int64_t c, const em_sums *s)
{
    em_model *model = posterior->model;
    const int64_t n = query->n_chain * query->stride, row = c * query->stride;
    const int64_t values = n + c / 8 * 8, count = choose(posterior, minibatch, query, c).count;
    const em_query all = em_query_into(query, s->part, s->part + n);
    em_query one = em_query_panel(&all, c, 1);
    em_status status = EM_OK;

    group_by_part(posterior, count);
    for (int64_t first = 0, p = 0; status >= 0 && first < count; first = posterior->end[p++]) {
        one.rows =
            (em_rows){.count = posterior->end[p] - first, .index = posterior->grouped + first};
        if (one.rows.count == 0)
            continue;
        status = em_posterior_add_likelihood(model, &one);
        em_binned_add(query->stride, s->part + row, s->bins + em_binned_size(row));
        em_binned_add(8, s->part + values, s->bins + em_binned_size(values));
    }
    return status;
}

static em_status sum_chosen_parts(em_posterior *posterior, em_status status,
                                  const em_minibatch *minibatch, const em_query *query)
{
    const em_sums s =
        em_sums_begin(&posterior->likelihood, query->n_chain * (query->stride + 1), false);

    for (int64_t c = 0; status >= 0 && c < query->n_chain; c++)
        status = add_chosen_parts(posterior, minibatch, query, c, &s);
    return em_sums_end(&s, posterior->grid, status);
}

em_status em_posterior_sum_by_parts(em_posterior *posterior)
{
    const em_share *own = &posterior->model->rows;

    if (em_model_finishes_counts(posterior->model) || own->total == 0)
        return EM_OK;
    return em_own_all(&posterior->memory,
                      EM_ARRAY(posterior->grouped, em_integers_capacity(own->total)),
                      EM_ARRAY(posterior->end, own->count / own->part + 2));
}

static bool model_estimates(const em_posterior *posterior)
{
    const em_model *model = posterior->model;

    return em_model_has_likelihood(model) && model->ops->minibatch && !posterior->grouped;
}

static bool estimates_minibatches(const em_posterior *posterior, const em_minibatch *minibatch)
{
    return !posterior->parent && minibatch->size < posterior->model->rows.total &&
           model_estimates(posterior);
}

bool em_posterior_estimates_alone(const em_posterior *posterior, const em_minibatch *minibatch)
{
    return estimates_minibatches(posterior, minibatch) && em_grid_n_shard(posterior->grid) == 1;
}

bool em_posterior_has_ranges(const em_posterior *posterior)
{
    return posterior->model->ops->ranges;
}

em_status em_posterior_estimate_ranges(em_posterior *posterior, const em_minibatch *minibatch,
                                       const em_query *query, bool published)
{
    em_model *model = posterior->model;
    em_query one = *query;
    const double scale = scale_of(posterior, minibatch, query->evaluation);
    em_status status = em_posterior_begin(posterior, 1);

    if (status && !posterior->is_partitioned)
        return status;
    one.rows = choose(posterior, minibatch, query, 0);
    if (posterior->is_partitioned)
        return em_posterior_estimate_part(posterior, status, &one, scale, published);
    status = model->ops->ranges->estimate(model, &one, scale, published);
    return status < 0 ? status : EM_OK;
}

void em_posterior_gradient_range(em_posterior *posterior, int64_t first, int64_t n,
                                 const double *theta, double *gradient)
{
    const em_model_ranges *ranges = posterior->model->ops->ranges;

    if (posterior->is_partitioned) {
        const em_range_parts parts = em_posterior_parts(posterior);
        ranges->gradient_of_parts(posterior->model, first, n, theta, &parts, gradient);
    } else
        ranges->gradient(posterior->model, first, n, theta, gradient);
}

void em_posterior_publish(em_posterior *posterior, int64_t first, int64_t n, const double *theta)
{
    const em_model_ranges *ranges = posterior->model->ops->ranges;

    if (posterior->is_partitioned) {
        const em_range_parts parts = em_posterior_parts(posterior);
        ranges->publish_part(posterior->model, first, n, theta, &parts);
    } else
        ranges->publish(posterior->model, first, n, theta);
}

void em_posterior_fetch_range(const em_posterior *posterior, int64_t first, int64_t n)
{
    const em_model_ranges *ranges = posterior->model->ops->ranges;

    if (ranges->fetch && !posterior->is_partitioned)
        ranges->fetch(posterior->model, first, n);
}

em_status em_posterior_may_partition(em_posterior *posterior, const em_minibatch *minibatch,
                                     bool *may)
{
    *may = false;
    if (em_grid_n_shard(posterior->grid) == 1 || !estimates_minibatches(posterior, minibatch))
        return EM_OK;
    const em_status status = em_posterior_share_sums(posterior);
    *may = !status && em_shard_reduction_panel(posterior->reduction);
    return status;
}

em_status em_posterior_estimate(em_posterior *posterior, const em_minibatch *minibatch,
                                const em_query *query)
{
    const int64_t n = posterior->model->rows.total;
    em_status status;

    if (posterior->parent) {
        const em_query wide = em_part_query(posterior, query);
        status = em_posterior_estimate(posterior->parent, minibatch, &wide);
        em_part_narrow(posterior, query->n_chain, posterior->gradient, query->stride,
                       query->gradient);
        return status;
    }
    if (minibatch->size >= n || !em_model_has_likelihood(posterior->model))
        return em_posterior_sum_all(posterior, query);
    const double scale = scale_of(posterior, minibatch, query->evaluation);
    if (model_estimates(posterior))
        return estimate_by_model(posterior, minibatch, query, scale);
    status = em_posterior_add_prior(posterior, query);
    status = posterior->grouped ? sum_chosen_parts(posterior, status, minibatch, query)
                                : sum_chosen(posterior, status, minibatch, query);
    if (!status)
        em_posterior_add_sums(posterior, scale, query);
    return status;
}
