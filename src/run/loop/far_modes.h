/* Searches for modes outside the region of the chains. */
#pragma once

#include "run/loop/engine.h"

/*
 * At the end of the warmup of chains that are not tempered: follows points up to 1000 standard
 * deviations away to their optima (50 where the model may contain a solver), if the run has a mode
 * search and no more than EM_MODE_SEARCH_MOST_DIM dimensions. A mode with notable mass and no draws
 * makes the run *not converged* or, with temper: auto, starts the ladders. Collective. Errors,
 * agreed: EM_EMEMORY, those of the target.
 */
em_status em_search_far_modes(em_engine *engine);

/* At the end of sampling: looks for modes from the steep points of trajectories, if the run has
 * noted them (em_mode_search_from_steep). Collective. Errors, agreed: as above. */
em_status em_search_steep_points(em_engine *engine, em_mode_findings *found);
