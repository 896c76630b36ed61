#include "app/command/checked_config.h"

#include "model/model.h"

em_status em_checked_model(const em_checked *check, int64_t n_chain, em_model **out)
{
    const em_config *config = check->config;
    const bool divides = config->run.ranks_per_chain > 1; /* the work, and no data */
    const em_model_context context = {
        .seed = (uint64_t)config->run.seed,
        .shard = divides ? 0 : em_grid_shard(check->grid),
        .n_shard = config->run.shards,
        .n_rank = config->run.ranks_per_chain,
        .ranks = config->model->use_ranks ? em_grid_lend_ranks(check->grid) : NULL,
        .ops = config->model,
        .n_chain = n_chain,
        .exact = true,
        .shards = divides ? NULL : &check->shards};

    return em_config_create_model(config, &context, out);
}
