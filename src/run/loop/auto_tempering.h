/* `temper: auto`: chains are sampled plainly, and where warmup ends in several modes the run goes
 * on with ladders. The draws of warmup decide, so that the bytes are the same on any number of
 * ranks. */
#pragma once

#include "run/loop/engine.h"

/* Keeps the draws of a warmup iteration, where the decision is still to come. Local. */
void em_auto_tempering_take(em_engine *engine, int64_t iteration);

/* The decision at the end of warmup. *ended: false where ladders have begun, whose own warmup
 * follows. Collective. Errors: agreed. */
em_status em_auto_tempering_decide(em_engine *engine, bool *ended);

/* Shows the decision, or what it will rest on, to a visitor, and makes the ladders of a run that is
 * restored, whose state comes after it. Collective. Errors: the visitor's; agreed. */
em_status em_auto_tempering_visit(em_engine *engine, const em_visitor *visitor);
