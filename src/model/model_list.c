#include "model/model_list.h"

#include "model/satellite.h"

#include <stddef.h>
#include <string.h>

extern const em_model_ops em_model_banana, em_model_double_well, em_model_double_well_tilted,
    em_model_eight_schools, em_model_gaussian, em_model_linear, em_model_logistic,
    em_model_negative_binomial, em_model_normal_wishart, em_model_poisson, em_model_process,
    em_model_stan, em_model_umbridge;

const em_model_ops *const em_models[] = {&em_model_eight_schools,
                                         &em_model_gaussian,
                                         &em_model_normal_wishart,
                                         &em_model_linear,
                                         &em_model_logistic,
                                         &em_model_poisson,
                                         &em_model_negative_binomial,
                                         &em_model_double_well,
                                         &em_model_double_well_tilted,
                                         &em_model_banana,
                                         &em_model_stan,
                                         &em_model_process,
                                         &em_model_umbridge,
                                         NULL};

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
