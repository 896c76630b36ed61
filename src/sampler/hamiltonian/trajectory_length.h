/*
 * How many steps the trajectories of an iteration have, of kernels to which that is given: drawn
 * uniformly from 1 to 2 mean - 1, because a fixed length can be resonant. It is shared by all
 * chains, so that they stay in step, and independent of where they are.
 */
#ifndef EM_SAMPLER_HAMILTONIAN_TRAJECTORY_LENGTH_H
#define EM_SAMPLER_HAMILTONIAN_TRAJECTORY_LENGTH_H

#include "sampler/kernel/sampler.h"

/* The row of the option that asks for it, which is `jitter` of `type`. */
#define EM_JITTER_FIELD(type)                                                                      \
    EM_BOOL(type, jitter, .fallback = "true",                                                      \
            .doc = "draw the number of steps uniformly from 1 to 2 leapfrog_steps - 1")

/* The number of steps: `mean` itself without jitter. Local. */
int64_t em_draw_length(const em_step_context *context, int64_t mean, bool jitter);

#endif
