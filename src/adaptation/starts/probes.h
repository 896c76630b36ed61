/*
 * Probes: points far from the known modes, at which one gradient tells whether a mode is unknown.
 *
 * Where a known mode of a normal law dominates, the Newton step of that mode leads from the point
 * to the centre of the mode. If this holds for no known mode, then an ascent from the point may end
 * in another one. A probe costs one gradient where an ascent costs about fifteen, so many more
 * directions can be examined. It matters for narrow modes: among d dimensions, the directions from
 * a wide mode in which a mode r times as wide dominates are about the fraction r^(d - 1).
 */
#pragma once

#include "adaptation/starts/mode_comparison.h"

/* Examines probes after the ascents of a search, until each chain has used its gradients. Ascents
 * follow from those that no known mode explains. Collective. Errors: EM_EMEMORY, those of the
 * posterior and of the law of the search, agreed. */
em_status em_probe_modes(em_ascents *ascents);
