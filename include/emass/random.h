/*
 * Random numbers for what a model draws when it reports a draw (em_model_ops.report), estimates a
 * density (em_query_draw), moves a chain (em_update_draw) or places one: counted by the em_draw and
 * an index alone, so that they are the same on any number of ranks and after a restart. Number i of
 * a draw is one number, whichever way it is asked for: a model that draws two things takes them
 * from different indices.
 */
#ifndef EMASS_RANDOM_H
#define EMASS_RANDOM_H

#include "emass/model.h"

#include <stdint.h>

EM_BEGIN_C

/* out[0..n): numbers first .. first + n - 1 (below 2^41) as uniforms in (0, 1). Local. */
EM_API void em_draw_uniforms(const em_draw *draw, uint64_t first, int64_t n, double *out);

/* The same as standard normals: the quantiles of those uniforms. Local. */
EM_API void em_draw_normals(const em_draw *draw, uint64_t first, int64_t n, double *out);

EM_END_C

#endif
