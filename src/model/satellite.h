/*
 * A satellite is a folder of src with a family of models, and with sampling kernels and commands
 * for these models only. Its table is in the list of model/model_list.c. No file outside the folder
 * names its models, kernels or commands.
 */
#pragma once

#include "emass/model.h"

struct em_sampler_ops;

typedef struct em_satellite {
    const char *name; /* of the folder */
    int n_model, n_sampler;
    const em_model_ops *const *model;
    const struct em_sampler_ops *const *sampler;
} em_satellite;

/* The i-th of the samplers of all satellites; NULL: there are no more. Local. */
const struct em_sampler_ops *em_satellite_sampler(int i);
