/* Calls the model's own transition, and its after_iteration. */
#include "base/fault.h"
#include "base/memory.h"
#include "par/mapped.h"
#include "par/shard_memory.h"
#include "posterior/inside.h"

#include <stdatomic.h>
#include <string.h>

/* A sum of at most FEW numbers also carries the status of the rank, which saves a message. */
enum { FEW = 4096 };

static em_status sum_over_shards(void *context, em_status own, int64_t n, int64_t *x)
{
    const int64_t with = n <= FEW ? n : 0;
    int64_t few[FEW + 1];

    if (with > 0)
        memcpy(few, x, (size_t)with * sizeof *x);
    few[with] = own < 0;
    em_grid_sum_integers(context, with + 1, few);
    if (few[with] > 0)
        return em_grid_share_failure(context, own);
    if (with > 0)
        memcpy(x, few, (size_t)with * sizeof *x);
    else
        em_grid_sum_integers(context, n, x);
    return EM_OK;
}

static em_status share_with_shards(void *context, int64_t n, int64_t size, void *out)
{
    const int64_t bytes = n * size + EM_ALIGNMENT;
    em_mapped_header *found = em_shard_memory(context, bytes);
    const bool shared = found != NULL;
    void *memory = NULL;
    em_status status = shared ? EM_OK : em_allocate(bytes, 1, &found);

    if (found && (!shared || em_grid_shard(context) == 0))
        *found = (em_mapped_header){n, size, bytes, shared};
    status = sum_over_shards(context, status, 0, NULL);
    if (found)
        memory = (char *)found + EM_ALIGNMENT;
    if (status)
        em_mapped_free(&memory);
    memcpy(out, &memory, sizeof memory);
    return status;
}

/* Makes what each shard has written to shared memory visible to the others, by a barrier. */
static void publish_to_shards(void *context, void *memory)
{
    const em_mapped_header *of = em_mapped_header_of(memory);
    int64_t none = 0;

    atomic_thread_fence(memory_order_seq_cst);
    if (of->shared)
        em_grid_sum_integers(context, 1, &none);
    else
        em_grid_gather_shards(context, of->n, of->size, memory);
    atomic_thread_fence(memory_order_seq_cst);
}

static em_status exchange_with_shards(void *context, em_status own, const int64_t *bytes,
                                      const void *const *out, int64_t *taken, int64_t *capacity,
                                      char **in)
{
    int64_t all = 0;
    em_status status = own;

    em_grid_exchange_lengths(context, bytes, taken);
    for (int64_t s = 0; s < em_grid_n_shard(context); s++)
        all += taken[s];
    status = status ? status : em_reserve(in, capacity, 0, all);
    status = sum_over_shards(context, status, 0, NULL);
    if (!status)
        em_grid_exchange(context, bytes, out, taken, *in);
    return status;
}

em_shards em_shards_of(const em_grid *grid)
{
    return (em_shards){.context = (void *)grid,
                       .sum = sum_over_shards,
                       .share = share_with_shards,
                       .publish = publish_to_shards,
                       .release = em_mapped_free,
                       .exchange = exchange_with_shards};
}

em_status em_posterior_update(em_posterior *posterior, const em_update *update)
{
    const em_shards shards = em_shards_of(posterior->grid);
    em_update asked = *update;
    em_status status = EM_OK;

    if (posterior->parent) {
        em_part_widen(posterior, update->n_chain, update->stride, update->chain, update->theta);
        asked.stride = em_stride(posterior->model->dim);
        asked.theta = posterior->theta;
        asked.block = posterior->block;
        status = em_posterior_update(posterior->parent, &asked);
        em_part_narrow(posterior, update->n_chain, posterior->theta, update->stride, update->theta);
        return status;
    }
    asked.shards = &shards;
    if (em_fault("model"))
        status =
            shards.sum(shards.context,
                       em_fail(EM_EMODEL, "model %s failed", posterior->model->ops->name), 0, NULL);
    status = status ? status : posterior->model->ops->latent->update(posterior->model, &asked);
    return sum_over_shards(shards.context, status, 0, NULL);
}

em_status em_posterior_after_iteration(em_posterior *posterior, const em_update *after)
{
    const em_shards shards = em_shards_of(posterior->grid);
    em_update asked = *after;

    const em_model_latent *latent = posterior->model->ops->latent;

    if (!latent || !latent->after_iteration)
        return EM_OK;
    asked.shards = &shards;
    return sum_over_shards(shards.context, latent->after_iteration(posterior->model, &asked), 0,
                           NULL);
}

em_status em_posterior_pool(em_posterior *posterior, const em_update *at)
{
    const em_model_latent *latent = posterior->model->ops->latent;
    const em_shards shards = em_shards_of(posterior->grid);
    em_update asked = *at;

    asked.shards = &shards;
    return latent && latent->pool ? latent->pool(posterior->model, &asked) : EM_OK;
}
