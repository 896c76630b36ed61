/* Prior and likelihood, summed over the parts of the data on all shards. */
#include "base/fault.h"
#include "base/memory.h"
#include "base/system/foreign_call_watchdog.h"
#include "math/binned.h"
#include "model/model.h"
#include "posterior/inside.h"

#include <string.h>

em_status em_posterior_begin(em_posterior *posterior, int64_t n_chain)
{
    if (em_fault("model"))
        return em_fail(EM_EMODEL, "model %s failed", posterior->model->ops->name);
    posterior->evaluations += n_chain;
    return EM_OK;
}

/* Copies the numbers of the first rank to ranks that evaluate the same density together, because
 * their results may differ by rounding. The ranks fail together. */
static em_status copy_first_rank(const em_posterior *posterior, em_status status,
                                 const em_query *query)
{
    int64_t failed = status < 0;

    em_grid_sum_integers(posterior->grid, 1, &failed);
    if (failed)
        return em_grid_share_failure(posterior->grid, status);
    em_grid_copy_first_shard(posterior->grid, query->n_chain, (uint64_t *)query->log_density);
    if (query->wanted != EM_WANT_LOG_DENSITY)
        em_grid_copy_first_shard(posterior->grid, query->n_chain * query->stride,
                                 (uint64_t *)query->gradient);
    return EM_OK;
}

em_status em_posterior_add_prior(em_posterior *posterior, const em_query *query)
{
    em_status status = em_posterior_begin(posterior, query->n_chain);

    if (status)
        return status;
    memset(query->log_density, 0, (size_t)query->n_chain * sizeof(double));
    memset(query->gradient, 0, (size_t)(query->n_chain * query->stride) * sizeof(double));
    em_foreign_call_begin();
    status = em_model_add_prior(posterior->model, query);
    em_foreign_call_end();
    return posterior->model->n_rank > 1 ? copy_first_rank(posterior, status, query) : status;
}

em_status em_posterior_add_likelihood(em_model *model, const em_query *query)
{
    em_foreign_call_begin();
    const em_status status = em_model_add_likelihood(model, query);
    em_foreign_call_end();
    return status;
}

void em_posterior_add_sums(const em_posterior *posterior, double scale, const em_query *query)
{
    const int64_t n = query->n_chain * query->stride;
    const double *sum = posterior->likelihood.part;

    for (int64_t i = 0; i < n; i++)
        query->gradient[i] += scale * sum[i];
    for (int64_t c = 0; c < query->n_chain; c++)
        query->log_density[c] += scale * sum[n + c];
}

static bool is_one_part(const em_posterior *posterior)
{
    return em_grid_n_shard(posterior->grid) == 1 &&
           posterior->model->rows.total <= posterior->model->rows.part;
}

/* Computes the likelihood of every part of this shard separately. */
static em_status add_parts(em_posterior *posterior, em_status status, const em_query *query,
                           const em_sums *s)
{
    em_model *model = posterior->model;
    em_query part = em_query_into(query, s->part, s->part + query->n_chain * query->stride);

    for (int64_t first = 0; status >= 0 && first < model->rows.count; first += model->rows.part) {
        part.rows = em_part_at(&model->rows, first);
        status = em_posterior_add_likelihood(model, &part);
        if (!is_one_part(posterior))
            em_binned_add(s->n, s->part, s->bins);
    }
    return status;
}

/* A model with a summary computes the likelihood of all observations on every shard. */
static em_status add_whole(em_posterior *posterior, const em_query *query)
{
    em_query whole = *query;

    whole.rows = (em_rows){.all = true};
    const em_status status = em_posterior_add_likelihood(posterior->model, &whole);
    return status < 0 ? status : EM_OK;
}

em_status em_posterior_share_sums(em_posterior *posterior)
{
    em_sums *sums = &posterior->likelihood;

    if (posterior->reduction || em_grid_n_shard(posterior->grid) == 1)
        return EM_OK;
    em_status status = em_shard_reduction_create(posterior->grid, sums->n, &posterior->reduction);
    if (!status) {
        em_release(&sums->part);
        sums->part = em_shard_reduction_own(posterior->reduction);
    }
    return status;
}

em_status em_posterior_end_counts(const em_posterior *posterior, em_status status,
                                  const em_query *of)
{
    double *sum = posterior->likelihood.part;
    const int64_t size = of->n_chain * (of->stride + 1);

    sum[size] = status < 0;
    if (posterior->reduction)
        em_shard_reduction_sum(posterior->reduction, size + 1);
    else
        em_grid_sum_shards(posterior->grid, size + 1, sum);
    if (sum[size] != 0)
        return em_grid_share_failure(posterior->grid, status);
    if (em_model_finishes_counts(posterior->model))
        posterior->model->ops->counts->finish(posterior->model, of);
    return EM_OK;
}

/* Computes the likelihood of all rows, for a model whose likelihood depends on counts. */
static em_status sum_all_counts(em_posterior *posterior, em_status status, const em_query *query)
{
    const int64_t n = query->n_chain * query->stride, size = n + query->n_chain;
    double *sum = posterior->likelihood.part;
    em_query all = em_query_into(query, sum, sum + n);

    memset(sum, 0, (size_t)size * sizeof *sum);
    all.rows = (em_rows){.count = posterior->model->rows.count};
    if (status >= 0)
        status = em_posterior_add_likelihood(posterior->model, &all);
    return em_posterior_end_counts(posterior, status, &all);
}

em_status em_posterior_sum_all(em_posterior *posterior, const em_query *query)
{
    const em_model *model = posterior->model;
    em_status status = em_posterior_add_prior(posterior, query);

    if (!em_model_has_likelihood(model))
        return status < 0 ? status : EM_OK;
    if (model->n_chunk > 0)
        return status < 0 ? status : add_whole(posterior, query);
    if (em_model_finishes_counts(model)) {
        status = sum_all_counts(posterior, status, query);
        if (!status)
            em_posterior_add_sums(posterior, 1, query);
        return status;
    }
    const bool is_one = is_one_part(posterior);
    const em_sums s =
        em_sums_begin(&posterior->likelihood, query->n_chain * (query->stride + 1), is_one);
    status = add_parts(posterior, status, query, &s);
    status = is_one ? em_sums_of_one(&s, status) : em_sums_end(&s, posterior->grid, status);
    if (!status)
        em_posterior_add_sums(posterior, 1, query);
    return status;
}

em_status em_posterior_evaluate(em_posterior *posterior, const em_query *query)
{
    if (posterior->answer)
        return posterior->answer(posterior, query);
    if (posterior->parent) {
        const em_query wide = em_part_query(posterior, query);
        const em_status status = em_posterior_evaluate(posterior->parent, &wide);
        em_part_narrow(posterior, query->n_chain, posterior->gradient, query->stride,
                       query->gradient);
        return status;
    }
    if (posterior->model->estimates)
        return em_fail(EM_ECONFIG, "model %s estimates its density, but an exact density is needed",
                       posterior->model->ops->name);
    return em_posterior_sum_all(posterior, query);
}
