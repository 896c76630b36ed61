/* The public random numbers of a draw. */
#include "emass/random.h"
#include "math/normal.h"
#include "math/rng.h"

void em_draw_uniforms(const em_draw *draw, uint64_t first, int64_t n, double *out)
{
    static const em_purpose purpose[] = {[EM_DRAW_REPORT] = EM_RNG_REPORT,
                                         [EM_DRAW_EVALUATION] = EM_RNG_EVALUATION,
                                         [EM_DRAW_UPDATE] = EM_RNG_UPDATE,
                                         [EM_DRAW_START] = EM_RNG_START,
                                         [EM_DRAW_PREDICTION] = EM_RNG_PREDICTION,
                                         [EM_DRAW_PRIOR] = EM_RNG_PRIOR,
                                         [EM_DRAW_PRIOR_REPORT] = EM_RNG_PRIOR_REPORT};
    const em_stream stream = {draw->seed, (uint64_t)draw->chain, (uint64_t)draw->iteration,
                              purpose[draw->purpose]};

    em_uniforms(&stream, first, n, out);
}

void em_draw_normals(const em_draw *draw, uint64_t first, int64_t n, double *out)
{
    em_draw_uniforms(draw, first, n, out);
    for (int64_t i = 0; i < n; i++)
        out[i] = em_normal_quantile(out[i]);
}
