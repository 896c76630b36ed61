#include "base/system/foreign_call_watchdog.h"

#include <stdatomic.h>
#include <time.h>

static _Atomic double since, longest; /* 0: in no foreign call */

/* A time in nanoseconds, from a clock that is cheap to read and exact to some milliseconds. */
static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void note(double at)
{
    const double from = atomic_load_explicit(&since, memory_order_relaxed);

    if (from > 0 && at - from > atomic_load_explicit(&longest, memory_order_relaxed))
        atomic_store_explicit(&longest, at - from, memory_order_relaxed);
}

void em_foreign_call_begin(void)
{
    const double at = now();

    note(at);
    atomic_store_explicit(&since, at, memory_order_relaxed);
}

void em_foreign_call_end(void)
{
    note(now());
    atomic_store_explicit(&since, 0, memory_order_relaxed);
}

double em_foreign_call_seconds(void)
{
    const double from = atomic_load_explicit(&since, memory_order_relaxed);

    return from > 0 ? now() - from : 0;
}

double em_foreign_call_longest(void)
{
    return atomic_load_explicit(&longest, memory_order_relaxed);
}
