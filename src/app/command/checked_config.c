#include "app/command/checked_config.h"

#include "model/model.h"

em_status em_checked_model(const em_checked *check, int64_t n_chain, em_model **out)
{
    const em_config *config = check->config;
    em_model_context context = em_config_model_context(config, check->grid, &check->shards);

    context.n_chain = n_chain;
    context.exact = true;
    context.minibatches = em_config_takes_minibatches(config);
    return em_config_create_model(config, &context, out);
}
