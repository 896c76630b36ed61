/* The warmup summary: one line on iterations, gradients, and the trajectory length found. */
#include "adaptation/adaptation_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *em_phase_name(int phase)
{
    static const char *const names[] = {[EM_PHASE_INITIAL] = "arrive",
                                        [EM_PHASE_STEP_SIZE] = "tune",
                                        [EM_PHASE_TRAJECTORY_LENGTH] = "climb",
                                        [EM_PHASE_FINAL] = "rest",
                                        [EM_PHASE_SAMPLING] = "draw"};

    return names[phase];
}

/* Appends to `out`, cut to what fits in `bytes`. */
static void append(size_t bytes, char *out, const char *format, ...) EM_PRINTF(3, 4);

static void append(size_t bytes, char *out, const char *format, ...)
{
    const size_t used = strlen(out);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(out + used, bytes - used, format, arguments);
    va_end(arguments);
}

void em_adapt_summarise(const em_adapt *adapt, size_t bytes, char *out)
{
    const em_warmup *warmup = &adapt->warmup;

    out[0] = '\0';
    if (!warmup->runs || warmup->n_phase == 0)
        return;
    const em_phase_record *initial = &warmup->record[0],
                          *last = &warmup->record[warmup->n_phase - 1];
    append(bytes, out, "warmup %.0f iterations, %.0f gradients; the chains ", last->iteration,
           last->gradients);
    if ((int)initial->end == EM_END_REACHED)
        append(bytes, out, "had arrived at %.0f", initial->iteration);
    else
        append(bytes, out, "were given %.0f to arrive%s", initial->iteration,
               warmup->n_stationary >= 2 ? ", and had" : ", and had not all");
    if (warmup->drawn.kind == EM_TRAJECTORY_TIME)
        append(bytes, out, "; T %.3g, %.0f steps", warmup->drawn.time,
               fmax(1, ceil(warmup->drawn.time / adapt->pools->step_size)));
    else if (warmup->plan.learned)
        append(bytes, out, "; curvature varies, so that nuts draws");
    if (warmup->n_reinitialised > 0)
        append(bytes, out, "; %lld %s took the position of another, the last at %lld",
               (long long)warmup->n_reinitialised,
               warmup->n_reinitialised == 1 ? "chain" : "chains",
               (long long)warmup->last_reinitialised);
}
