/* The common part of the creation of built-in models. */
#pragma once

#include "emass/model.h"

/* For the create of a model that begins with its em_model: allocates `size` bytes, all zero but for
 * the table of functions, and sets them up. A model whose set_up fails is destroyed. Collective.
 * Errors: EM_EMEMORY, agreed; those of set_up. */
typedef em_status em_model_set_up(em_model *model, const void *options,
                                  const em_model_context *context);
em_status em_model_build(size_t size, const em_model_ops *ops, em_model_set_up *set_up,
                         const void *options, const em_model_context *context, em_model **out);
