/* `temper: auto`: chains start untempered, and if warmup ends in several modes the run continues
 * with ladders. The decision depends on the draws of warmup alone, so that the file has the same
 * bytes on any number of ranks. */
#pragma once

#include "run/loop/engine.h"

/* Stores the draws of a warmup iteration, until the decision is made. Local. */
void em_auto_tempering_take(em_engine *engine, int64_t iteration);

/* The decision at the end of warmup. *ended is false if ladders have started, because their warmup
 * follows. Collective. Errors: agreed. */
em_status em_auto_tempering_decide(em_engine *engine, bool *ended);

/* Passes the decision, or the draws that it will depend on, to a visitor. When a run is restored,
 * it also creates the ladders, whose state is visited next. Collective. Errors: the visitor's;
 * agreed. */
em_status em_auto_tempering_visit(em_engine *engine, const em_visitor *visitor);
