/* Evaluates a posterior whose chains all shards of a group share. The shards have one panel of
 * positions, and each computes the gradient of a coordinate range. */
#include "posterior/inside.h"

#include <string.h>

void em_posterior_own_range(const em_posterior *posterior, int64_t n, int64_t *first, int64_t *end)
{
    const int64_t n_shard = em_grid_n_shard(posterior->grid);
    const int64_t shard = em_grid_shard(posterior->grid);

    *first = em_partition_first(n, n_shard, shard);
    *end = em_partition_first(n, n_shard, shard + 1);
}

static void copy(em_span at, const double *from, double *to)
{
    if (from != to)
        memcpy(to + at.first, from + at.first, (size_t)(at.end - at.first) * sizeof *to);
}

double *em_posterior_begin_partitioned(em_posterior *posterior, em_span own, const double *theta,
                                       const em_meanwhile *meanwhile)
{
    double *panel = em_shard_reduction_panel(posterior->reduction);

    posterior->own = own;
    posterior->meanwhile = meanwhile;
    posterior->is_partitioned = true;
    copy(own, theta, panel);
    em_posterior_wait(posterior);
    return panel;
}

void em_posterior_end_partitioned(em_posterior *posterior)
{
    posterior->is_partitioned = false;
    posterior->meanwhile = NULL;
}

void em_posterior_gather_partitioned(const em_posterior *posterior, int64_t n, const double *from,
                                     double *to)
{
    double *panel = em_shard_reduction_panel(posterior->reduction);

    copy(posterior->own, from, panel);
    em_posterior_wait(posterior);
    copy((em_span){0, n}, panel, to);
    em_posterior_wait(posterior);
}

void em_posterior_sum_partitioned(const em_posterior *posterior, int64_t n, double *x)
{
    em_grid_sum_shards(posterior->grid, n, x);
}

bool em_posterior_partitions_gradient(const em_posterior *posterior, int64_t n_chain)
{
    const em_model *model = posterior->model;

    return n_chain == 1 && model->single && model->ops->ranges && model->ops->ranges->estimate_part;
}

em_range_parts em_posterior_parts(const em_posterior *posterior)
{
    em_range_parts parts = {.n_shard = em_grid_n_shard(posterior->grid),
                            .shard = em_grid_shard(posterior->grid),
                            .published = em_shard_reduction_half_panel(posterior->reduction)};

    parts.part = em_shard_reduction_all(posterior->reduction, &parts.room);
    return parts;
}

/* Sums the log densities and the failures of all shards. */
static em_status sum_values(const em_posterior *posterior, em_status status, const em_query *query)
{
    const int64_t n = query->n_chain * query->stride, size = n + query->n_chain;
    double failed;

    em_shard_reduction_add(posterior->reduction, n, query->n_chain, query->log_density);
    em_shard_reduction_add(posterior->reduction, size, 1, &failed);
    return failed != 0 ? em_grid_share_failure(posterior->grid, status) : EM_OK;
}

em_status em_posterior_estimate_part(em_posterior *posterior, em_status status,
                                     const em_query *query, double scale, bool published)
{
    const em_range_parts parts = em_posterior_parts(posterior);
    double *own = posterior->likelihood.part;
    const em_query one = em_query_into(query, own, own + query->stride);

    em_posterior_wait(posterior); /* all have moved */
    if (status >= 0)
        status = posterior->model->ops->ranges->estimate_part(posterior->model, &one, scale,
                                                              published, &parts);
    own[query->stride + 1] = status < 0;
    em_posterior_wait(posterior);
    return sum_values(posterior, status, query);
}

em_status em_posterior_end_estimates(const em_posterior *posterior, em_status status,
                                     const em_query *query)
{
    const int64_t size = query->n_chain * (query->stride + 1);
    const em_span own = posterior->own;

    posterior->likelihood.part[size] = status < 0;
    em_posterior_wait(posterior);
    em_shard_reduction_add(posterior->reduction, own.first, own.end - own.first,
                           query->gradient + own.first);
    return sum_values(posterior, status, query);
}
