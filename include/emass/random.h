/*
 * Random numbers for models. A model may draw them when it reports a draw (em_model_ops.report),
 * estimates a density (em_query_draw), moves a chain (em_update_draw) or chooses a start. A number
 * depends on the em_draw and an index alone, so that it is the same on any number of ranks and
 * after a restart. All functions compute number i of a draw from the same bits, so a model that
 * needs two independent numbers must use different indices.
 */
#pragma once

#include "emass/model.h"

#include <stdint.h>

EM_BEGIN_C

/* out[0..n): numbers first .. first + n - 1 (below 2^41) as uniforms in (0, 1). Local. */
EM_API void em_draw_uniforms(const em_draw *draw, uint64_t first, int64_t n, double *out);

/* out[0..n): the standard normal quantiles of the uniforms that em_draw_uniforms gives. Local. */
EM_API void em_draw_normals(const em_draw *draw, uint64_t first, int64_t n, double *out);

EM_END_C
