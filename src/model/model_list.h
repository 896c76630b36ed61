/* The list of models of this folder. A new model is one file and one line in model/model_list.c.
 * Topic models and networks register themselves (model/satellite.h). */
#pragma once

#include "emass/model.h"

extern const em_model_ops *const em_models[]; /* ends with NULL */

/* Models that a program has registered (emass/emass.h). */
typedef struct em_registry {
    int count;
    const em_model_ops **model; /* [count] */
} em_registry;

/* Sets additional models for the calling thread (NULL: none); returns the previous ones. Local. */
const em_registry *em_registry_enter(const em_registry *registry);

/* The i-th model: first those of this folder, then of satellites, then of the program; NULL: there
 * are no more. Local. */
const em_model_ops *em_model_at(int i);

/* The model with this name; NULL: there is none. Local. */
const em_model_ops *em_model_named(const char *name);
