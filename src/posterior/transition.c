/* The model's own transition, and its look at what others have done. */
#include "base/fault.h"
#include "base/memory.h"
#include "posterior/inside.h"

#include <string.h>

/* Numbers of which there are no more have the status of their rank with them. */
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

static em_status deal_to_shards(void *context, em_status own, int64_t n, int64_t size, int64_t *x)
{
    const em_status status = sum_over_shards(context, own, 0, NULL);

    if (!status)
        em_grid_deal_integers(context, n, size, x);
    return status;
}

static void gather_from_shards(void *context, int64_t n, int64_t size, void *x)
{
    em_grid_gather_shards(context, n, size, x);
}

em_shards em_shards_of(const em_grid *grid)
{
    return (em_shards){(void *)grid, sum_over_shards, gather_from_shards, deal_to_shards};
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
    if (!status)
        status = posterior->model->ops->latent->update(posterior->model, &asked);
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
