/* The models, samplers and estimators that a config can name, in one form for the parser and for
 * `emass list`. */
#pragma once

#include "emass/field.h"

#include <stdbool.h>
#include <stddef.h>

/* A model, a sampler or a mass estimator. All borrowed. */
typedef struct em_variant {
    const char *name, *doc, *source;
    size_t options_size;
    const em_field *fields; /* may be NULL */
} em_variant;

/* Gives the i-th variant; false when there are no more. Local. */
typedef bool em_variant_list(int i, em_variant *out);

em_variant_list em_model_variant, em_sampler_variant, em_estimator_variant;
