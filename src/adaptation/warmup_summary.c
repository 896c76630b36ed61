/* The warmup summary: one line on iterations, gradients, and the trajectory length found. */
#include "adaptation/adaptation_internal.h"
#include "base/text/append.h"

#include <math.h>

const char *em_phase_name(int phase)
{
    static const char *const names[] = {[EM_PHASE_INITIAL] = "arrive",
                                        [EM_PHASE_STEP_SIZE] = "tune",
                                        [EM_PHASE_TRAJECTORY_LENGTH] = "climb",
                                        [EM_PHASE_FINAL] = "rest",
                                        [EM_PHASE_SAMPLING] = "draw"};

    return names[phase];
}

void em_adapt_summarise(const em_adapt *adapt, size_t bytes, char *out)
{
    const em_warmup *warmup = &adapt->warmup;

    out[0] = '\0';
    if (!warmup->runs || warmup->n_phase == 0)
        return;
    const em_phase_record *initial = &warmup->record[0],
                          *last = &warmup->record[warmup->n_phase - 1];
    em_append(bytes, out, "warmup %.0f iterations, %.0f gradients; the chains ", last->iteration,
              last->gradients);
    if ((int)initial->end == EM_END_REACHED)
        em_append(bytes, out, "had arrived at %.0f", initial->iteration);
    else
        em_append(bytes, out, "were given %.0f to arrive%s", initial->iteration,
                  warmup->n_stationary >= 2 ? ", and had" : ", and had not all");
    if (warmup->drawn.kind == EM_TRAJECTORY_TIME)
        em_append(bytes, out, "; T %.3g, %.0f steps", warmup->drawn.time,
                  fmax(1, ceil(warmup->drawn.time / adapt->pools->step_size)));
    else if (warmup->plan.learned)
        em_append(bytes, out, "; curvature varies, so that nuts draws");
    if (warmup->n_reinitialised > 0)
        em_append(bytes, out, "; %lld %s took the position of another, the last at %lld",
                  (long long)warmup->n_reinitialised,
                  warmup->n_reinitialised == 1 ? "chain" : "chains",
                  (long long)warmup->last_reinitialised);
}
