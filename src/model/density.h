/* Models that are a density of their options alone: what stands for the functions they leave out.
 */
#ifndef EM_MODEL_DENSITY_H
#define EM_MODEL_DENSITY_H

#include "emass/model.h"

/* Puts them into a table that has none of its own. Local. */
void em_density_complete(em_model_ops *ops);

#endif
