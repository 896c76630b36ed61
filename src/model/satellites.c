#include "model/satellite.h"

#include <stddef.h>

/* Lists the satellites, one line each: topics/sampler/topics_satellite.c,
 * network/network_satellite.c. */
extern const em_satellite em_topics_satellite, em_network_satellite;

const em_satellite *const em_satellites[] = {&em_topics_satellite, &em_network_satellite, NULL};

int em_n_satellite_model(void)
{
    int n = 0;

    for (const em_satellite *const *s = em_satellites; *s; s++)
        n += (*s)->n_model;
    return n;
}

const em_model_ops *em_satellite_model(int i)
{
    for (const em_satellite *const *s = em_satellites; *s; i -= (*s)->n_model, s++)
        if (i < (*s)->n_model)
            return (*s)->model[i];
    return NULL;
}

const struct em_sampler_ops *em_satellite_sampler(int i)
{
    for (const em_satellite *const *s = em_satellites; *s; i -= (*s)->n_sampler, s++)
        if (i < (*s)->n_sampler)
            return (*s)->sampler[i];
    return NULL;
}
