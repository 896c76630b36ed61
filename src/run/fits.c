#include "run/fits.h"

em_status em_sampler_fits(const em_config *config, const em_model *model)
{
    const em_sampler_ops *sampler = config->sampler;
    const char *name = model->ops->name;

    if (sampler->by_model && !model->ops->update)
        return em_fail(EM_ECONFIG,
                       "sampler %s asks the model for an update of its own, which model %s has "
                       "not: expected another sampler",
                       sampler->name, name);
    if (!sampler->by_model && !model->ops->add_prior)
        return em_fail(EM_ECONFIG,
                       "sampler %s needs a density, which model %s has not: expected sampler gibbs",
                       sampler->name, name);
    if (!sampler->by_model && !sampler->minibatches && model->estimates)
        return em_fail(EM_ECONFIG,
                       "sampler %s needs an exact density, but model %s estimates it by random "
                       "numbers: expected a sampler that takes minibatches (emass list samplers)",
                       sampler->name, name);
    return EM_OK;
}
