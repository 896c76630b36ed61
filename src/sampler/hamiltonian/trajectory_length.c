#include "sampler/hamiltonian/trajectory_length.h"

#include "math/rng.h"

int64_t em_draw_length(const em_step_context *context, int64_t mean, bool jitter)
{
    const em_stream stream = {context->seed, EM_ALL_CHAINS, (uint64_t)context->iteration,
                              EM_RNG_TRAJECTORY};

    return jitter ? 1 + (int64_t)em_uniform_below(&stream, 0, (uint64_t)(2 * mean - 1)) : mean;
}
