/* What every bench needs: processor time, a median, one JSON line per figure. */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include "emass/status.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A bench has nothing to say when something fails. */
static inline void require(em_status status)
{
    if (status) {
        fprintf(stderr, "bench: %s\n", em_error_text());
        exit(EXIT_FAILURE);
    }
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of n numbers, which are put in order. */
static inline double median_of(int64_t n, double *x)
{
    qsort(x, (size_t)n, sizeof *x, compare_doubles);
    return x[n / 2];
}

/* Seconds of one call: the median of 9 batches of about 30 ms each. */
static inline double seconds_per_call(void (*call)(void *), void *data)
{
    enum { BATCHES = 9 };
    double batch[BATCHES];
    long n = 1;

    for (;; n *= 2) {
        const double start = seconds_now();
        for (long i = 0; i < n; i++)
            call(data);
        if (seconds_now() - start > 0.03)
            break;
    }
    for (int k = 0; k < BATCHES; k++) {
        const double start = seconds_now();
        for (long i = 0; i < n; i++)
            call(data);
        batch[k] = (seconds_now() - start) / (double)n;
    }
    return median_of(BATCHES, batch);
}

/* `ratio` NaN: there is nothing it is compared with. */
static inline void print_figure(const char *name, double value, const char *unit, double ratio)
{
    printf("{\"name\": \"%s\", \"value\": %.4g, \"unit\": \"%s\", \"ratio\": ", name, value, unit);
    if (isnan(ratio))
        printf("null}\n");
    else
        printf("%.4g}\n", ratio);
    fflush(stdout);
}

#endif
