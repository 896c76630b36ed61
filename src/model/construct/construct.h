/* The common part of the creation of built-in models. */
#pragma once

#include "emass/model.h"

typedef em_status em_model_set_up(em_model *model, const void *options,
                                  const em_model_context *context);

/* How a model is made: em_model_ops.state of a table whose `create` is em_model_build. */
typedef struct em_construction {
    size_t size; /* of its struct, which begins with em_model */
    em_model_set_up *set_up;
} em_construction;

/* em_model_ops.create: allocates the struct, zero but for the table of functions, and calls set_up.
 * If set_up fails, the model is destroyed. Collective. Errors: EM_EMEMORY, agreed; those of set_up.
 */
em_status em_model_build(const void *options, const em_model_context *context, em_model **out);
