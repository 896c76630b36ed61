/* What warmup took and found, in words. */
#include "adaptation/adaptation_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *em_phase_name(int stage)
{
    static const char *const names[] = {[EM_PHASE_INITIAL] = "arrive",
                                        [EM_PHASE_STEP_SIZE] = "tune",
                                        [EM_PHASE_TRAJECTORY_LENGTH] = "climb",
                                        [EM_PHASE_FINAL] = "rest",
                                        [EM_PHASE_SAMPLING] = "draw"};

    return names[stage];
}

/* Appends to `out`, as much as there is room for. */
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
    const em_warmup *course = &adapt->course;

    out[0] = '\0';
    if (!course->runs || course->n_stage == 0)
        return;
    const em_phase_record *arrive = &course->record[0],
                          *last = &course->record[course->n_stage - 1];
    append(bytes, out, "warmup %.0f iterations, %.0f gradients; the chains ", last->iteration,
           last->gradients);
    if ((int)arrive->end == EM_END_REACHED)
        append(bytes, out, "had arrived at %.0f", arrive->iteration);
    else
        append(bytes, out, "were given %.0f to arrive%s", arrive->iteration,
               course->n_arrived >= 2 ? ", and had" : ", and had not all");
    if (course->drawn.kind == EM_TRAJECTORY_TIME)
        append(bytes, out, "; T %.3g, %.0f steps", course->drawn.time,
               fmax(1, ceil(course->drawn.time / adapt->pools->step_size)));
    else if (course->plan.learned)
        append(bytes, out, "; curvature varies, so that nuts draws");
    if (course->n_rescued > 0)
        append(bytes, out, "; %lld %s took the position of another, the last at %lld",
               (long long)course->n_rescued, course->n_rescued == 1 ? "chain" : "chains",
               (long long)course->last_rescue);
}
