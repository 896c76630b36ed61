/* Modes outside of the region where the chains are. */
#pragma once

#include "run/loop/engine.h"

/*
 * At the end of the warmup of chains that are not tempered: follows points up to 50 standard
 * deviations away to their optima, where the run searches for modes in a number of dimensions in
 * which these are compared. A mode that holds mass and has no draws makes the run *not converged*,
 * or begins the ladders of temper: auto. Collective. Errors, agreed: EM_EMEMORY, those of the
 * target.
 */
em_status em_look_for_far_modes(em_engine *engine);
