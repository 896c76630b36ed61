#include "model/model_list.h"

#include "model/satellite.h"

#include <stddef.h>
#include <string.h>

/* The models, in the order of `emass list`. The table of a model is em_model_NAME. */
#define MODELS(each)                                                                               \
    each(eight_schools) each(gaussian) each(normal_wishart) each(linear) each(logistic)            \
        each(poisson) each(negative_binomial) each(double_well) each(double_well_tilted)           \
            each(banana) each(stan) each(process) each(umbridge)

#define DECLARED(name) extern const em_model_ops em_model_##name;
#define MODEL(name)    &em_model_##name,

MODELS(DECLARED)

const em_model_ops *const em_models[] = {MODELS(MODEL) NULL};

/* The satellites: topics/sampler/topics_satellite.c, network/network_satellite.c. */
extern const em_satellite em_topics_satellite, em_network_satellite;

static const em_satellite *const satellites[] = {&em_topics_satellite, &em_network_satellite, NULL};

const struct em_sampler_ops *em_satellite_sampler(int i)
{
    for (const em_satellite *const *s = satellites; *s; i -= (*s)->n_sampler, s++)
        if (i < (*s)->n_sampler)
            return (*s)->sampler[i];
    return NULL;
}

static _Thread_local const em_registry *entered;

const em_registry *em_registry_enter(const em_registry *registry)
{
    const em_registry *before = entered;

    entered = registry;
    return before;
}

const em_model_ops *em_model_at(int i)
{
    const int own = (int)(sizeof em_models / sizeof *em_models) - 1;

    if (i < own)
        return em_models[i];
    i -= own;
    for (const em_satellite *const *s = satellites; *s; i -= (*s)->n_model, s++)
        if (i < (*s)->n_model)
            return (*s)->model[i];
    return entered && i < entered->count ? entered->model[i] : NULL;
}

const em_model_ops *em_model_named(const char *name)
{
    const em_model_ops *ops;
    int i = 0;

    while ((ops = em_model_at(i)) && strcmp(ops->name, name) != 0)
        i++;
    return ops;
}
