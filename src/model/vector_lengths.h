/* Which parameters of a model belong to one vector, by their declaration or by their names. */
#pragma once

#include "emass/model.h"

/* Writes to length [dim] the number of parameters in the vector or matrix of the model to which
 * each one belongs: 1 for a scalar. If a model has neither declared nor named its parameters, all
 * are those of one vector. Local. */
void em_model_vector_lengths(const em_model *model, int64_t dim, int64_t *length);
