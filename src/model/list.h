/* All models, by name; ends with NULL. A new one is one file and one line in model/list.c. */
#ifndef EM_MODEL_LIST_H
#define EM_MODEL_LIST_H

#include "emass/model.h"

extern const em_model_ops *const em_models[];

#endif
