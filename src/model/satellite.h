/*
 * A satellite is a room of models, with the kernels and commands that these alone have. It
 * registers itself by one table, and no other room names its models. All satellites are in
 * model/model_list.c.
 */
#ifndef EM_MODEL_SATELLITE_H
#define EM_MODEL_SATELLITE_H

#include "emass/model.h"

struct em_sampler_ops;

typedef struct em_satellite {
    const char *name; /* of the room */
    int n_model, n_sampler;
    const em_model_ops *const *model;
    const struct em_sampler_ops *const *sampler;
} em_satellite;

/* The i-th of the samplers of all satellites; NULL: there are no more. Local. */
const struct em_sampler_ops *em_satellite_sampler(int i);

#endif
