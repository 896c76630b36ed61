/* The common part of the creation of built-in models. */
#pragma once

#include "emass/model.h"

/* Implements `create` of a model whose struct begins with em_model: allocates `size` bytes, zero
 * but for the table of functions, and calls set_up. If set_up fails, the model is destroyed.
 * Collective. Errors: EM_EMEMORY, agreed; those of set_up. */
typedef em_status em_model_set_up(em_model *model, const void *options,
                                  const em_model_context *context);
em_status em_model_build(size_t size, const em_model_ops *ops, em_model_set_up *set_up,
                         const void *options, const em_model_context *context, em_model **out);
